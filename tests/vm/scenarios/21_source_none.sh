# shellcheck shell=bash
# With source = none, as packaged, every crash is a bundle with its core dump
# and a backtrace, once core dumps come to clewd.
scenario() {
  restart_clewd "rate_failure = 100"
  expect_line "state" "$(clew daemon status)" 'clewd .* off, up .*'
  expect_status 0 systemctl start clew-core-pattern
  # As Debian's services have it.
  expect_same "soft limit of core dumps" "$(ulimit -Sc)" 0
  crash_until tail has_core_and_library crash
  systemctl stop clew-core-pattern
  expect_same "core files" "$(compgen -G '/var/tmp/core*')" ""
  await "nothing is recorded afterwards" is_off
}

has_core_and_library() {
  [[ -s "$1/core" ]] && clew backtrace "$1" 2>&1 | grep -q libc
}

crash() {
  (cd /var/tmp && die_asleep tail -f /dev/null)
}

is_off() {
  clew daemon status | grep -qE '^clewd .* off, up '
}
