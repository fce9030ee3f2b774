# shellcheck shell=bash
# clewd watches units again after the bus was away.
scenario() {
  service_until_told after "exit 3"
  restart_clewd "source = sideband
sideband_only = yes
rate_failure = 100
[unit after.service]"
  await "clewd records" records
  systemctl restart dbus
  systemctl start after
  end_service after
  await "the failure is saved" saved after.service
}
