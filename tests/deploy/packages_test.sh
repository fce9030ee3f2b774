#!/usr/bin/env bash
# Goal: what is in the three packages, with which modes, dependencies and
# scripts, is what was meant; the same build gives the same bytes.
# Method: packages are made from an existing build; lists of files are compared
# whole, so that a file too many fails as one too few does. With --again they are
# made once more, and compared with those in the folder.
#
#   packages_test.sh BUILD_FOLDER OUTPUT_FOLDER [--again]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/deploy/expect.sh
. "$here/expect.sh"
build=$1
out=$2

# make_packages <folder>
make_packages() {
  rm -rf "$1"
  (cd "$build" && SOURCE_DATE_EPOCH=1700000000 \
    cpack -G DEB --config CPackConfig.cmake -B "$1" >"$1.log" 2>&1) || {
    cat "$1.log" >&2
    wrong "cpack failed; are all targets built?"
    finish
  }
  rm -rf "$1/_CPack_Packages"
}

# files_of <package>: mode, owner and name of everything but folders, sorted.
files_of() {
  dpkg-deb --fsys-tarfile "$out/$1"_*.deb | tar -tv |
    awk '$1 !~ /^d/ {print $1, $2, substr($6, 2)}' | LC_ALL=C sort -k 3
}

# folders_of <package>: those that are not root's with mode 0755.
odd_folders_of() {
  dpkg-deb --fsys-tarfile "$out/$1"_*.deb | tar -tv |
    awk '/^d/ && ($1 != "drwxr-xr-x" || $2 != "root/root")'
}

field() {
  dpkg-deb --field "$out/$1"_*.deb "$2"
}

scripts_of() {
  dpkg-deb --ctrl-tarfile "$out/$1"_*.deb | tar -tv |
    awk '$6 ~ /(post|pre)(inst|rm)$/ {print $1, $2, substr($6, 3)}' |
    LC_ALL=C sort -k 3
}

check_files() {
  expect_same "list of clew" "$(files_of clew)" \
    "$(cat "$here/files/clew")"
  expect_same "list of clewd" "$(files_of clewd)" \
    "$(cat "$here/files/clewd")"
  expect_same "list of clew-collector" "$(files_of clew-collector)" \
    "$(cat "$here/files/clew-collector")"
}

check_control() {
  local package
  for package in clew clewd clew-collector; do
    expect_same "odd folders of $package" "$(odd_folders_of "$package")" ""
    expect_line "Installed-Size of $package" \
      "$(field "$package" Installed-Size)" '[0-9]+'
    expect_line "Architecture of $package" \
      "$(field "$package" Architecture)" 'amd64'
  done
  local version
  version=$(field clew Version)
  expect_line "Depends of clew" "$(field clew Depends)" '.*libz3-4.*'
  expect_line "Recommends of clew" "$(field clew Recommends)" 'gdb, qemu-user'
  expect_line "Recommends of clewd" "$(field clewd Recommends)" 'dbus'
  expect_line "Depends of clewd" "$(field clewd Depends)" \
    ".*clew \\(= $version\\).*libsystemd0.*"
  expect_line "Depends of clew-collector" "$(field clew-collector Depends)" \
    ".*clew \\(= $version\\).*libcurl4.*libgrpc\\+\\+1.51.*"
  expect_same "scripts of clewd" "$(scripts_of clewd)" \
    '-rwxr-xr-x root/root postinst
-rwxr-xr-x root/root postrm
-rwxr-xr-x root/root prerm'
  expect_same "scripts of clew-collector" "$(scripts_of clew-collector)" \
    "$(scripts_of clewd)"
}

check_same_again() {
  local package
  make_packages "$out.again"
  for package in "$out"/*.deb; do
    cmp "$package" "$out.again/$(basename "$package")" ||
      wrong "a second run of cpack gives another $(basename "$package")"
  done
  rm -rf "$out.again" "$out.again.log"
}

if [[ "${3:-}" == --again ]]; then
  check_same_again
else
  make_packages "$out"
  check_files
  check_control
fi
finish
