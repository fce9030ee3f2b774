# shellcheck shell=bash
# The kernel calls the packaged handler: clewd saves the core dump, the pattern
# from before gets all of it, too; also while clewd is stopped.
scenario() {
  restart_clewd "source = sideband
sideband_only = yes
rate_failure = 100"
  await "clewd records" records
  expect_status 0 systemctl start clew-core-pattern
  expect_line "core_pattern" "$(cat /proc/sys/kernel/core_pattern)" \
    '\|/usr/lib/clew/clew-core-handler .*'
  crash_until sleep has_core_and_stack crash || return 0
  check_own_core
  systemctl stop clewd
  crash
  check_own_core
  systemctl start clewd
  systemctl stop clew-core-pattern
  expect_same "core_pattern afterwards" \
    "$(cat /proc/sys/kernel/core_pattern)" core
}

has_core_and_stack() {
  [[ -s "$1/core" ]] && clew backtrace "$1" 2>&1 | grep -q nanosleep
}

# crash: in a folder of its own, where the core dump of the pattern `core` goes.
crash() {
  mkdir -p /var/tmp/crash
  (cd /var/tmp/crash && rm -f core* && ulimit -c unlimited &&
    die_asleep sleep 10000)
}

check_own_core() {
  await "the handler from before has the core" readable_core
  rm -f /var/tmp/crash/core
}

readable_core() {
  gdb --batch -c /var/tmp/crash/core 2>&1 | grep SIGSEGV
}
