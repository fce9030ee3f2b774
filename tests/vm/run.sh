#!/usr/bin/env bash
# Goal: what operators install works where they install it: Debian's own kernel
# and its settings, systemd as the first process, the units as packaged.
# Method: a machine under QEMU's TCG (no KVM is needed), without an image: the
# host's root below an overlay in memory, Debian's kernel unpacked beside it.
# scenarios/ are run in it one after the other. Nothing is installed or written
# on the host but the cache folder; in the machine there is no network.
#
#   run.sh PACKAGES CACHE_FOLDER
#
# CLEW_VM_ONLY: a regular expression; only scenarios whose name matches, and
# those whose name begins with 0.
# CLEW_VM_BEFORE: a folder with the packages of an earlier version, from which
# an upgrade is tried.
# CLEW_VM_SECONDS: for all of it; default 3600.
# CLEW_VM_KEEP=yes: keep the shared folder, with console, output and journal.
#
# The last line is "N passed, N failed"; exit status 77: cannot be run here, and
# why.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/vm/machine.sh
. "$here/machine.sh"
packages=$(realpath "$1")
cache=$(realpath -m "$2")

# cannot <why>
cannot() {
  echo "skipped: $1"
  exit 77
}

# fill_shared: what the machine gets.
fill_shared() {
  mkdir "$shared/packages"
  cp "$packages"/*.deb "$shared/packages/"
  if [[ -n "${CLEW_VM_BEFORE:-}" ]]; then
    mkdir "$shared/before"
    cp "$CLEW_VM_BEFORE"/*.deb "$shared/before/"
  fi
  cp -r "$here"/{boot.sh,guest.sh,lib.sh,scenarios} \
    "$here/../deploy/expect.sh" "$shared/"
  local program
  for program in "$here"/programs/*.c; do
    gcc -O1 -static -o "$shared/$(basename "$program" .c)" "$program"
  done
  # One file is read over 9p in no time, thousands are not.
  tar -C / --exclude='*.md5sums' -cf "$shared/dpkg.tar" var/lib/dpkg
  printf 'CLEW_VM_ONLY=%q\n' "${CLEW_VM_ONLY:-}" >"$shared/options"
  touch "$shared/results" "$shared/output"
}

# report: what the scenarios said, and the sums.
report() {
  local failed passed
  cat "$shared/output"
  echo
  cat "$shared/results"
  passed=$(grep -c '^pass ' "$shared/results" || true)
  failed=$(grep -c '^FAIL ' "$shared/results" || true)
  # The last thing that the machine does.
  if [[ ! -e "$shared/journal" ]]; then
    echo "the machine did not get to its end; its console:"
    tail -n 20 "$scratch/console"
    failed=$((failed + 1))
  fi
  echo "$passed passed, $failed failed"
  [[ "$failed" -eq 0 ]]
}

[[ "$(id -u)" -eq 0 ]] || cannot "not root; the host's files must be readable"
command -v qemu-system-x86_64 >/dev/null ||
  cannot "no qemu-system-x86_64; tools/setup installs it"
kernel=$(vm_kernel "$cache") || cannot "no Debian kernel to run"
scratch=$(mktemp -d)
cleanup() {
  if [[ "${CLEW_VM_KEEP:-}" == yes ]]; then
    echo "kept: $scratch"
  else
    rm -rf "$scratch"
  fi
}
trap cleanup EXIT
shared=$scratch/shared
mkdir "$shared"
fill_shared
make_initrd "$kernel" "$scratch/initrd.gz" "$here/init"
begin=$SECONDS
run_machine "$kernel" "$scratch/initrd.gz" "$shared" \
  "${CLEW_VM_SECONDS:-3600}" >"$scratch/console" 2>&1 || true
echo "the machine ran for $((SECONDS - begin)) s"
report
