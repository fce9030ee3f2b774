# shellcheck shell=bash
# Units that are configured long after clewd's start are watched. dbus-daemon
# closes a connection on which nobody has spoken for 30 s (auth_timeout of
# dbus-daemon(1)), here for 5 s. The configuration comes later than that: when
# somebody was shown out who came after clewd and said nothing.
scenario() {
  shorten_auth_timeout
  restart_clewd "source = none"
  expect_line "a silent client" "$(silent_client)" 'shown out after [0-9]+ s'
  service_until_told late "exit 3"
  configure_clewd "source = sideband
sideband_only = yes
rate_failure = 100
[unit late.service]"
  await "clewd records" records
  systemctl start late
  end_service late
  await "the unit's failure is saved" saved late.service
  rm /etc/dbus-1/system-local.conf
  systemctl reload dbus
}

shorten_auth_timeout() {
  echo '<busconfig><limit name="auth_timeout">5000</limit></busconfig>' \
    >/etc/dbus-1/system-local.conf
  expect_status 0 systemctl reload dbus
}

# silent_client: connects and says nothing, until it is shown out.
silent_client() {
  python3 - <<'EOT'
import socket, time
client = socket.socket(socket.AF_UNIX)
client.connect("/run/dbus/system_bus_socket")
client.settimeout(600)
begin = time.monotonic()
if client.recv(1) == b"":
    print("shown out after %d s" % (time.monotonic() - begin))
EOT
}
