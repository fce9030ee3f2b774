#!/usr/bin/env bash
# Goal: the units parse without a word, name programs that are installed, and
# are as shut in as they are meant to be.
# Method: systemd-analyze on a tree of the unpacked packages and this host's
# targets. The thresholds are what was reached, in tenths; a line that is lost
# raises the figure.
#
#   units_test.sh PACKAGES
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/deploy/expect.sh
. "$here/expect.sh"
packages=$1
units=/usr/lib/systemd/system

command -v systemd-analyze >/dev/null || skip "no systemd-analyze"
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
for package in "$packages"/*.deb; do
  dpkg-deb --extract "$package" "$tree"
done
cp -rn "$units/." "$tree$units/"
# What ExecReload= runs.
mkdir -p "$tree/bin"
cp /bin/kill "$tree/bin/"

# check_exposure <unit> <at most, in tenths>
check_exposure() {
  expect_status 0 systemd-analyze security --offline=yes --root="$tree" \
    --no-pager --threshold="$2" "$1"
  systemd-analyze security --offline=yes --root="$tree" --no-pager "$1" |
    sed -n 's/^→ //p'
}

said=$(systemd-analyze verify --root="$tree" --man=no --recursive-errors=no \
  "$tree$units"/clew*.service 2>&1) || wrong "systemd-analyze verify fails"
expect_same "what systemd-analyze verify says" "$said" ""
check_exposure clewd.service 36
check_exposure clew-core-pattern.service 14
check_exposure clew-collector.service 15
finish
