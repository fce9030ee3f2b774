#!/usr/bin/env bash
# Goal: the default configuration files have every key that the programs know
# and no other, each with a value that they take.
# Method: the programs judge: a file with every key switched on is accepted; a
# key that does not exist is refused with the list of those that do, and that
# list is the file's.
#
#   configuration_test.sh PACKAGES
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/deploy/expect.sh
. "$here/expect.sh"
packages=$1
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
for package in "$packages"/*.deb; do
  dpkg-deb --extract "$package" "$tree"
done

# keys_of <file>: those switched off, too. "# word = " in prose is none.
keys_of() {
  sed -n 's/^#\{0,1\}\([a-z_]*\) = \{0,1\}.*/\1/p; s/^#\([a-z_]*\) =$/\1/p' \
    "$1" | LC_ALL=C sort -u
}

# switched_on <file>: with every key and section.
switched_on() {
  sed 's/^#\([[a-z]\)/\1/' "$1"
}

# check <name> <command that checks a file>...
check() {
  local file=$tree/etc/clew/$1 probe=$tree/probe known
  shift
  expect_status 0 "$@" "$file"
  switched_on "$file" >"$probe"
  expect_status 0 "$@" "$probe"
  echo "no_such_key = 1" >>"$probe"
  expect_status 2 "$@" "$probe"
  known=$("$@" "$probe" 2>&1 | sed -n 's/.*; known are //p' |
    sed 's/, /\n/g' | LC_ALL=C sort -u)
  expect_same "keys of $file" "$(keys_of "$file")" "$known"
}

check clewd.conf "$tree/usr/sbin/clewd" --check-config
check collector.conf "$tree/usr/bin/clew-collector" --check-config
finish
