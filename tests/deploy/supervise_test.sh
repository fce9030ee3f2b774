#!/usr/bin/env bash
# Goal: clew-supervise does what its header says of readiness, the watchdog, a
# service that ends by itself, and a clean end.
# Method: one shell as the service for each.
#
#   supervise_test.sh CLEW_SUPERVISE
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/deploy/expect.sh
. "$here/expect.sh"
supervise=$1
command -v systemd-notify >/dev/null || skip "no systemd-notify"

# What must not be late has so many seconds: nothing that works needs them.
long=300

# check <what> <wanted line> <seconds for ready> <watchdog's> <shell command>
check() {
  local said
  said=$(timeout "$long" "$supervise" "$3" "$4" /bin/sh -c "$5" 2>&1) &&
    wrong "$1: exit status 0"
  expect_line "$1" "$said" "$2"
}

check "not ready" 'clew-supervise: /bin/sh: not ready in time, killed' 1 1 \
  'exec sleep 1000'
check "hung" 'clew-supervise: /bin/sh: watchdog not fed in time, killed' \
  "$long" 1 'systemd-notify --ready; exec sleep 1000'
check "ended" 'clew-supervise: /bin/sh ended by itself: exit status 3' \
  "$long" "$long" 'systemd-notify --ready; exit 3'

# Fed for longer than the watchdog's minute, then asked to end. It is a minute
# because a service that is fed five times a second is never that late.
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# shellcheck disable=SC2016  # the inner shell expands these
"$supervise" "$long" 60 /bin/sh -c 'trap "exit 0" TERM
  up_s() {
    read -r up _ </proc/uptime
    echo "${up%.*}"
  }
  systemd-notify --ready --status=open
  end=$(($(up_s) + 65))
  while [ "$(up_s)" -lt "$end" ]; do
    systemd-notify WATCHDOG=1
    sleep 0.2
  done
  systemd-notify WATCHDOG=1 --status=fed
  while :; do systemd-notify WATCHDOG=1; sleep 0.2; done' >"$log" 2>&1 &
pid=$!
for _ in $(seq "$long"); do
  if grep -qx STATUS=fed "$log" || ! kill -0 "$pid" 2>/dev/null; then
    break
  fi
  sleep 1
done
kill -TERM "$pid" || true
status=0
wait "$pid" || status=$?
expect_same "exit status after SIGTERM" "$status" 0
expect_same "what it printed" "$(cat "$log")" $'ready\nSTATUS=open\nSTATUS=fed'
finish
