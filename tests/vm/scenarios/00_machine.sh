# shellcheck shell=bash
# What all others stand on: this is the kernel and the setting that operators
# of Debian 12 have, and nothing of clew is there yet.
scenario() {
  expect_line "kernel" "$(uname -r)" '6\.1\.0-[0-9]+-amd64'
  expect_same "perf_event_paranoid" \
    "$(cat /proc/sys/kernel/perf_event_paranoid)" 3
  expect_same "the first process" "$(cat /proc/1/comm)" systemd
  expect_same "core_pattern" "$(cat /proc/sys/kernel/core_pattern)" core
  [[ ! -e /usr/bin/clew ]] || wrong "/usr/bin/clew is there before it is installed"
}
