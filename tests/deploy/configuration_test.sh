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

# switched_on <file>: with every key and section, and a store of the test's own.
switched_on() {
  sed "s/^#\\([[a-z]\\)/\\1/; s,/var/lib/clew-collector,$tree/store," "$1"
}

# say_of <program> <file>: what the program says of a configuration file; exit
# status 2 is a mistake in it. The collector has no store here, and that is the
# next thing that it says.
say_of() {
  case "$1" in
    clewd) "$tree/usr/sbin/clewd" --check-config "$2" 2>&1 ;;
    clew-collector) "$tree/usr/bin/clew-collector" --config "$2" check 2>&1 ;;
    clew) "$tree/usr/bin/clew" list --client-config "$2" 2>&1 ;;
  esac
}

# accepted <program> <file>
accepted() {
  local status=0 said
  said=$(say_of "$1" "$2") || status=$?
  if [[ "$status" -eq 2 ]]; then
    wrong "$1 refuses $2: $said"
  fi
}

# check <program> <file below the tree>
check() {
  local file=$tree/$2 probe=$tree/probe status=0 said
  switched_on "$file" >"$probe"
  accepted "$1" "$probe"
  echo "no_such_key = 1" >>"$probe"
  said=$(say_of "$1" "$probe") || status=$?
  expect_same "exit status of $1 for an unknown key" "$status" 2
  expect_same "keys of $2" "$(keys_of "$file")" \
    "$(sed -n 's/.*; known are //p' <<<"$said" | sed 's/, /\n/g' |
      LC_ALL=C sort -u)"
}

check clewd etc/clew/clewd.conf
check clew-collector etc/clew/collector.conf
check clew etc/clew/client.conf
fleet=$tree/usr/share/doc/clewd/examples/fleet
accepted clewd "$fleet/clewd.conf"
{ cat "$fleet/collector.conf" && echo "data = $tree/store"; } >"$tree/probe"
accepted clew-collector "$tree/probe"
accepted clew "$fleet/client.conf.in"
finish
