#!/usr/bin/env bash
# Goal: the packages install, work where they are installed, keep configuration
# when removed, and leave nothing when purged.
# Method: dpkg with the real scripts, in a root file system of the test's own
# over that of the host, or of a Debian without anything else (--chroot: made by
# debootstrap, takes minutes and a mirror; dependencies come from apt there).
# What an overlay collects is all that was written, so "nothing" is exact.
#
#   install_test.sh PACKAGES [--chroot CACHE_FOLDER]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/deploy/expect.sh
. "$here/expect.sh"
# shellcheck source=tools/private_root.sh
. "$here/../../tools/private_root.sh"
# shellcheck source=tests/deploy/debian_chroot.sh
. "$here/debian_chroot.sh"
packages=$1

inside() {
  chroot "$folder/root" /usr/bin/env -i LC_ALL=C.UTF-8 PYTHONDONTWRITEBYTECODE=1 \
    PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"
}

# changes: every file that is not as it was before, but for those that dpkg,
# ldconfig and Debian's way with users change for good.
changes() {
  (cd "$folder/up" && find . -mindepth 1 ! -type d -printf '%P\n') |
    grep -vxE 'var/lib/dpkg/.*|var/log/(dpkg|alternatives|apt/.*)\.?(log)?|'\
'var/cache/(ldconfig|apt|debconf)/.*|etc/ld\.so\.cache|'\
'etc/(passwd|group|shadow|gshadow)-?|etc/\.pwd\.lock' | LC_ALL=C sort || true
}

# left_folders: folders that were not there before.
left_folders() {
  (cd "$folder/up" && find . -mindepth 1 -type d -printf '%P\n') |
    while IFS= read -r path; do
      [[ -d "$lower/$path" ]] || echo "$path"
    done | grep -v '^var/lib/dpkg/' || true
}

# mode_of <path>
mode_of() {
  inside stat -c '%a %U:%G' "$1"
}

check_installed() {
  expect_same "mode of /var/lib/clew" "$(mode_of /var/lib/clew)" \
    "711 root:clew"
  expect_same "mode of incoming" \
    "$(mode_of /var/lib/clew/spool/incoming)" "1770 root:clew-record"
  expect_same "mode of the collector's store" \
    "$(mode_of /var/lib/clew-collector)" "700 clew-collector:clew-collector"
  expect_same "mode of the collector's secrets" \
    "$(mode_of /etc/clew/collector.d)" "750 root:clew-collector"
  expect_line "clewd" "$(inside systemctl is-enabled clewd 2>&1)" enabled
  expect_line "clew-core-pattern" \
    "$(inside systemctl is-enabled clew-core-pattern 2>&1)" disabled
  expect_line "clew-collector" \
    "$(inside systemctl is-enabled clew-collector 2>&1)" disabled
  expect_line "clew-collector's user" \
    "$(inside getent passwd clew-collector)" \
    'clew-collector:x:[0-9]+:[0-9]+:.*:/var/lib/clew-collector:.*nologin'
}

check_programs() {
  expect_status 0 inside clew version
  expect_line "clew doctor" "$(inside clew doctor 2>&1)" \
    '.*/usr/lib/clew/clew-qemu-plugin.so.*'
  expect_line "clew doctor --selftest" \
    "$(inside clew doctor --selftest 2>&1)" 'pass  *software replay .*'
  expect_status 0 inside clewd --check-config /etc/clew/clewd.conf
  expect_status 0 inside clewd --help
  expect_status 0 inside clew-collector --help
  expect_status 0 inside clew help daemon
  expect_status 0 inside test -x /usr/lib/clew/clew-core-handler
  expect_status 0 inside clewd redact --help
}

# A recording of an installed program by an installed clew.
check_recording() {
  local bundle=/tmp/true.clew
  expect_status 0 inside clew record -o "$bundle" -- /bin/true
  expect_status 0 inside clew info "$bundle"
}

# take_core_dumps: on a file that stands for the kernel's, which is the whole
# machine's, and read-only here.
take_core_dumps() {
  expect_same "what stands for core_pattern" "$(inside cat "$pattern")" \
    "|/bin/before %p"
  expect_status 0 inside clew daemon install-core-pattern
  expect_line "core_pattern" "$(inside cat "$pattern")" \
    '\|/usr/lib/clew/clew-core-handler .*'
}

check_removed() {
  expect_same "core_pattern after removal" "$(inside cat "$pattern")" \
    "|/bin/before %p"
  local file
  for file in usr/bin/clew usr/sbin/clewd usr/bin/clew-collector \
    usr/lib/clew usr/lib/systemd/system/clewd.service \
    etc/systemd/system/multi-user.target.wants/clewd.service; do
    [[ ! -e "$folder/root/$file" ]] || wrong "/$file is there after removal"
  done
  expect_line "clewd.conf after removal" \
    "$(tail -n 1 "$folder/root/etc/clew/clewd.conf")" '# edited'
  [[ -e "$folder/root/var/lib/clew/spool/incoming/kept" ]] ||
    wrong "the spool is gone after removal without purge"
}

check_purged() {
  expect_same "files left after purge" "$(changes)" "$before"
  expect_same "folders left after purge" "$(left_folders)" ""
}

main() {
  local before
  before=$(changes)
  echo "installing"
  expect_status 0 inside dpkg -i \
    /tmp/packages/{clew,clewd,clew-collector}.deb
  check_installed
  check_programs
  check_recording
  take_core_dumps
  echo "# edited" >>"$folder/root/etc/clew/clewd.conf"
  touch "$folder/root/var/lib/clew/spool/incoming/kept"
  echo "installing again, as an upgrade does"
  expect_status 0 inside dpkg -i /tmp/packages/clewd.deb
  echo "removing"
  expect_status 0 inside dpkg -r clewd clew-collector clew
  check_removed
  echo "purging"
  expect_status 0 inside dpkg -P clewd clew-collector clew
  check_purged
  finish
}

reason=$(can_have_private_root) || skip "$reason"
enter_private_root_namespaces "$0" "$@"
lower=/
if [[ "${2:-}" == --chroot ]]; then
  lower=$(debian_chroot "$3" "$packages") || skip "no Debian to install into"
fi
folder=$(mktemp -d)
trap 'umount -l "$folder" && rmdir "$folder"' EXIT
make_private_root "$lower" "$folder"
pattern=/proc/sys/kernel/core_pattern
echo "|/bin/before %p" >"$folder/core_pattern"
mount --bind "$folder/core_pattern" "$folder/root$pattern"
mkdir "$folder/root/tmp/packages"
for package in clew clewd clew-collector; do
  cp "$packages/$package"_*.deb "$folder/root/tmp/packages/$package.deb"
done
main
