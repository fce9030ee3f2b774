# shellcheck shell=bash
# To be sourced. A root file system of one's own over that of the host: what is
# written goes to memory and is gone at the end; the host is not touched.
#
#   enter_private_root_namespaces "$0" "$@"   # starts the script again, inside
#   make_private_root LOWER FOLDER            # FOLDER/root; changes: FOLDER/up
#
# Needs root and overlayfs. Nothing of it outlives the processes inside.

# can_have_private_root: says why not on stdout and is false where it cannot.
can_have_private_root() {
  if [[ "$(id -u)" -ne 0 ]]; then
    echo "not root"
    return 1
  fi
  local folder error status=0
  folder=$(mktemp -d)
  # shellcheck disable=SC2016  # the inner shell expands these
  error=$(unshare --mount --pid --fork --propagation private sh -ec '
    mount -t tmpfs tmpfs "$0"
    cd "$0"
    mkdir up work root
    mount -t overlay overlay \
      -o "lowerdir=/etc,upperdir=$0/up,workdir=$0/work" root' "$folder" 2>&1) ||
    status=1
  rmdir "$folder"
  if [[ "$status" -ne 0 ]]; then
    echo "no mounts in a namespace of its own: ${error##*$'\n'}"
  fi
  return "$status"
}

# enter_private_root_namespaces <script> <arguments...>: in new namespaces for
# mounts, processes, host name and IPC; returns where it already is.
enter_private_root_namespaces() {
  if [[ "${CLEW_PRIVATE_NAMESPACES:-}" == yes ]]; then
    return
  fi
  export CLEW_PRIVATE_NAMESPACES=yes
  exec unshare --mount --pid --uts --ipc --fork --kill-child \
    --propagation private --mount-proc -- "$@"
}

# make_private_root <lower folder> <empty folder>
make_private_root() {
  local lower=$1 folder=$2 root=$2/root node
  mount -t tmpfs -o mode=0700 tmpfs "$folder"
  mkdir "$folder/up" "$folder/work" "$root"
  chmod 0755 "$folder/up"
  mount -t overlay overlay \
    -o "lowerdir=$lower,upperdir=$folder/up,workdir=$folder/work" "$root"
  mount -t proc proc "$root/proc"
  # Settings of the kernel are the host's.
  mount --bind "$root/proc/sys" "$root/proc/sys"
  mount -o remount,bind,ro "$root/proc/sys"
  mount -t sysfs -o ro sysfs "$root/sys"
  mount -t tmpfs -o mode=0755 tmpfs "$root/run"
  mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
  mount -t tmpfs -o mode=0755 tmpfs "$root/dev"
  for node in null zero full random urandom tty; do
    touch "$root/dev/$node"
    mount --bind "/dev/$node" "$root/dev/$node"
  done
  mkdir "$root/dev/pts" "$root/dev/shm"
  mount -t devpts -o newinstance,ptmxmode=0666,mode=0620 devpts "$root/dev/pts"
  mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
  ln -s pts/ptmx "$root/dev/ptmx"
  ln -s /proc/self/fd "$root/dev/fd"
}
