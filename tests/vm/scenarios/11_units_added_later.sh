# shellcheck shell=bash
# Units that are configured long after clewd's start are watched. dbus-daemon
# closes a connection on which nobody has spoken for 30 s (auth_timeout of
# dbus-daemon(1)), so the configuration comes later than that.
scenario() {
  restart_clewd "source = none"
  sleep 35
  service late "/bin/sh -c 'sleep 4; exit 3'"
  configure_clewd "source = sideband
sideband_only = yes
rate_failure = 100
[unit late.service]"
  await 20 "clewd records" records
  systemctl start late
  await 10 "clewd knows the unit" unit_is late.service active
  await 30 "the unit's failure is saved" saved late.service
}
