# shellcheck shell=bash
# Removal puts the core pattern back, stops what runs and keeps what is the
# operator's.
scenario() {
  systemctl start clew-core-pattern
  mkdir -p "${spool:?}/ready/kept~1~1.clew"
  echo "# edited" >>/etc/clew/clewd.conf
  expect_status 0 dpkg --remove clewd clew-collector clew
  expect_same "core_pattern" "$(cat /proc/sys/kernel/core_pattern)" core
  expect_same "processes" "$(pgrep -l '^clew')" ""
  [[ -d "${spool:?}/ready/kept~1~1.clew" ]] || wrong "the spool is gone"
  expect_line "clewd.conf" "$(tail -n 1 /etc/clew/clewd.conf)" '# edited'
}
