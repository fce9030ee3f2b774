# shellcheck shell=bash
# clewd watches units again after the bus was away.
scenario() {
  service after "/bin/sh -c 'sleep 6; exit 3'"
  restart_clewd "source = sideband
sideband_only = yes
rate_failure = 100
[unit after.service]"
  await 20 "clewd records" records
  systemctl restart dbus
  systemctl start after
  await 15 "clewd sees the unit" unit_is after.service active
  await 40 "the failure is saved" saved after.service
}
