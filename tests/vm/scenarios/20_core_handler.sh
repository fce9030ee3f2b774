# shellcheck shell=bash
# The kernel calls the packaged handler: clewd saves the core dump, the pattern
# from before gets all of it, too; also while clewd is stopped.
scenario() {
  restart_clewd "source = sideband
sideband_only = yes
rate_failure = 100"
  await 20 "clewd records" records
  expect_status 0 systemctl start clew-core-pattern
  expect_line "core_pattern" "$(cat /proc/sys/kernel/core_pattern)" \
    '\|/usr/lib/clew/clew-core-handler .*'
  crash
  await 40 "the core dump is saved" saved sleep || return 0
  [[ -s "$(saved sleep | head -n 1)/core" ]] || wrong "no core in the bundle"
  expect_line "clew backtrace" \
    "$(clew backtrace "$(saved sleep | head -n 1)" 2>&1)" '.*nanosleep.*'
  check_own_core
  systemctl stop clewd
  crash
  check_own_core
  systemctl start clewd
  systemctl stop clew-core-pattern
  expect_same "core_pattern afterwards" \
    "$(cat /proc/sys/kernel/core_pattern)" core
}

# crash: in a folder of its own, where the core dump of the pattern `core` goes.
crash() {
  mkdir -p /var/tmp/crash
  (cd /var/tmp/crash && rm -f core* && ulimit -c unlimited &&
    exec bash -c 'sleep 60 & sleep 1; kill -SEGV $!; wait' 2>/dev/null)
}

check_own_core() {
  await 20 "the handler from before has the core" readable_core
  rm -f /var/tmp/crash/core
}

readable_core() {
  gdb --batch -c /var/tmp/crash/core 2>&1 | grep SIGSEGV
}
