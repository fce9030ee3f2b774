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

# check <what> <wanted line> <seconds for ready> <watchdog's> <shell command>
check() {
  local said
  said=$(timeout 40 "$supervise" "$3" "$4" /bin/sh -c "$5" 2>&1) &&
    wrong "$1: exit status 0"
  expect_line "$1" "$said" "$2"
}

check "not ready" 'clew-supervise: /bin/sh: not ready in time, killed' 1 1 \
  'exec sleep 20'
check "hung" 'clew-supervise: /bin/sh: watchdog not fed in time, killed' 15 1 \
  'systemd-notify --ready; exec sleep 20'
check "ended" 'clew-supervise: /bin/sh ended by itself: exit status 3' 15 15 \
  'systemd-notify --ready; exit 3'

# Fed for longer than the watchdog's 3 seconds, then asked to end.
log=$(mktemp)
trap 'rm -f "$log"' EXIT
"$supervise" 15 3 /bin/sh -c 'trap "exit 0" TERM
  systemd-notify --ready --status=open
  while :; do systemd-notify WATCHDOG=1; sleep 0.2; done' >"$log" 2>&1 &
pid=$!
sleep 5
kill -TERM "$pid"
status=0
wait "$pid" || status=$?
expect_same "exit status after SIGTERM" "$status" 0
expect_same "what it printed" "$(cat "$log")" $'ready\nSTATUS=open'
finish
