# shellcheck shell=bash
# Units that are configured long after clewd's start are watched. dbus-daemon
# closes a connection on which nobody has spoken for 30 s (auth_timeout of
# dbus-daemon(1)), here for 5 s, so the configuration comes later than that.
scenario() {
  shorten_auth_timeout
  restart_clewd "source = none"
  sleep 8
  service late "/bin/sh -c 'sleep 4; exit 3'"
  configure_clewd "source = sideband
sideband_only = yes
rate_failure = 100
[unit late.service]"
  await 20 "clewd records" records
  systemctl start late
  await 10 "clewd knows the unit" unit_is late.service active
  await 30 "the unit's failure is saved" saved late.service
  rm /etc/dbus-1/system-local.conf
  systemctl reload dbus
}

shorten_auth_timeout() {
  echo '<busconfig><limit name="auth_timeout">5000</limit></busconfig>' \
    >/etc/dbus-1/system-local.conf
  expect_status 0 systemctl reload dbus
  expect_line "a silent client" "$(silent_client)" 'closed after [4-9] s'
}

# silent_client: connects and says nothing, until it is shown out.
silent_client() {
  python3 - <<'EOT'
import socket, time
client = socket.socket(socket.AF_UNIX)
client.connect("/run/dbus/system_bus_socket")
client.settimeout(20)
begin = time.monotonic()
client.recv(1)
print("closed after %d s" % (time.monotonic() - begin))
EOT
}
