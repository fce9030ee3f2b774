# shellcheck shell=bash
# Purging leaves nothing of clew.
scenario() {
  # What 30_first_bundle put beside the configuration is not the packages'.
  rm -f /etc/clew/{ca.crt,host.crt,host.key}
  expect_status 0 dpkg --purge clewd clew-collector clew
  expect_same "files left" "$(compgen -G '/usr/*bin/clew*'
    compgen -G '/usr/lib/clew*'
    compgen -G '/usr/lib/*.d/*clew*'
    compgen -G '/usr/lib/systemd/system*/*clew*'
    compgen -G '/usr/share/doc/clew*'
    compgen -G '/var/lib/clew*'
    find /etc /run -xdev -name '*clew*')" ""
  expect_same "units left" "$(systemctl list-unit-files --no-legend 'clew*')" ""
  expect_same "failed units of clew" \
    "$(systemctl list-units --failed --no-legend 'clew*')" ""
}
