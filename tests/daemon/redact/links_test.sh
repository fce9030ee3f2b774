#!/usr/bin/env bash
# Goal: clewd, which runs as root, links no code that parses foreign bytes: core
# dumps, perf.data, input logs, start states, schedules, PT, zstd, ELF images.
# Method: the symbols of the linked program. clewd-redact, which has most of
# them, shows that the names are right.
#
#   links_test.sh CLEWD CLEWD_REDACT
set -euo pipefail
readers=(
  clew::bundle::Bundle::Open clew::bundle::CoreDump::
  clew::bundle::DumpRewriter:: clew::bundle::ForEachDumpNote
  clew::bundle::ReadDumpLayout clew::bundle::InputLog:: clew::bundle::PerfData::
  clew::bundle::ParseRecordBody clew::bundle::ReadEventAttr
  clew::bundle::ToSchedule clew::bundle::ToStart clew::bundle::Unzstd
  clew::decoder:: "clew::recorder::Redact(")
libraries=(libipt libdw libelf libzstd)
passed=0
failed=0

# expect <what> <status of a command>
expect() {
  if [[ "$2" -eq 0 ]]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "links_test: $1" >&2
  fi
}

symbols=$(nm --demangle "$1" | sed 's/^[^ ]* *. //')
redact=$(nm --demangle "$2" | sed 's/^[^ ]* *. //')
for reader in "${readers[@]}"; do
  found=0
  grep -m 3 "^${reader}" <<<"$symbols" >&2 || found=1
  expect "clewd links $reader" "$((1 - found))"
  known=0
  grep -q "^${reader}" <<<"$redact" || known=1
  expect "clewd-redact has no $reader: is it still called so?" "$known"
done
for library in "${libraries[@]}"; do
  found=0
  readelf -d "$1" | grep -F "[$library." >&2 || found=1
  expect "clewd links $library" "$((1 - found))"
done
echo "$passed passed, $failed failed"
[[ "$failed" -eq 0 ]]
