#!/bin/bash
# Inside the machine: runs the scenarios one after the other, each in a shell of
# its own, on what those before have left. A line for each in `results`:
# "pass|FAIL|skip SECONDS NAME".
export LC_ALL=C.UTF-8 HOME=/root DEBIAN_FRONTEND=noninteractive
cd /run/shared || exit 1
# shellcheck source=/dev/null
. ./options # CLEW_VM_ONLY, for which scenarios
for script in scenarios/*.sh; do
  name=${script##*/}
  name=${name%.sh}
  # What all others need is always run.
  if [[ "$name" != 0* && ! "$name" =~ $CLEW_VM_ONLY ]]; then
    continue
  fi
  printf '=== %s\n' "$name"
  begin_ms=$(date +%s%3N)
  # shellcheck disable=SC2016  # the inner shell expands these
  timeout --kill-after=5 1800 bash -c \
    '. ./lib.sh; . "$1"; scenario; finish' bash "$script" </dev/null 2>&1
  case $? in
    0) outcome=pass ;;
    77) outcome=skip ;;
    *) outcome=FAIL ;;
  esac
  ms=$(($(date +%s%3N) - begin_ms))
  printf '%s %d.%d %s\n' "$outcome" $((ms / 1000)) $((ms % 1000 / 100)) \
    "$name" >>results
done
journalctl --no-pager -o short-monotonic >journal 2>&1
