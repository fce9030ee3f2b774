# shellcheck shell=bash
# Purging leaves nothing of clew.
scenario() {
  expect_status 0 dpkg --purge clewd clew-collector clew
  expect_same "files left" "$(find /etc /var/lib /run /usr/lib /usr/share \
    -path /run/shared -prune -o -path /run/units.etc -prune -o \
    -name '*clew*' -print)" ""
  expect_same "units left" "$(systemctl list-unit-files --no-legend 'clew*')" ""
  expect_same "failed units of clew" \
    "$(systemctl list-units --failed --no-legend 'clew*')" ""
}
