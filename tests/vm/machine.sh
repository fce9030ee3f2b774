# shellcheck shell=bash
# To be sourced. Debian's own kernel and a machine to run it in, without
# installing either: packages are downloaded by apt and unpacked in a folder.

# The initrd's modules, in the order in which they need each other.
vm_modules=(
  drivers/virtio/virtio_ring drivers/virtio/virtio
  drivers/virtio/virtio_pci_modern_dev drivers/virtio/virtio_pci_legacy_dev
  drivers/virtio/virtio_pci net/9p/9pnet net/9p/9pnet_virtio
  fs/netfs/netfs fs/fscache/fscache fs/9p/9p fs/overlayfs/overlay
)

# unpack_package <package> <folder>: as apt's sources have it.
unpack_package() {
  local folder
  folder=$(mktemp -d)
  # apt's own user must be able to write there.
  chmod 0777 "$folder"
  (cd "$folder" && apt-get download -q "$1" && dpkg-deb --extract ./*.deb "$2") \
    >"$folder/log" 2>&1 || {
    cat "$folder/log" >&2
    rm -rf "$folder"
    echo "cannot unpack Debian's package $1; 'apt-get update' first?" >&2
    return 1
  }
  rm -rf "$folder"
}

# kernel_package: the one that linux-image-amd64 stands for today.
kernel_package() {
  apt-cache depends linux-image-amd64 |
    sed -n 's/^ *Depends: \(linux-image-[0-9].*\)$/\1/p' | head -n 1
}

# make_initrd <folder of unpacked packages> <file> <init>
make_initrd() {
  local folder module kernel
  folder=$(mktemp -d)
  mkdir -p "$folder"/{bin,dev,lower,m,new,proc,rw,sys}
  cp "$1/bin/busybox" "$folder/bin/"
  install -m 0755 "$3" "$folder/init"
  kernel=$(echo "$1"/lib/modules/*/kernel)
  for module in "${vm_modules[@]}"; do
    cp "$kernel/$module.ko" "$folder/m/" || return 1
    echo "${module##*/}" >>"$folder/m/order"
  done
  (cd "$folder" && find . | LC_ALL=C sort | cpio --quiet -o -H newc | gzip -1) \
    >"$2" || return 1
  rm -rf "$folder"
}

# vm_kernel <cache folder>: prints the folder of a Debian kernel's packages,
# made now (75 MB to download) or before.
vm_kernel() {
  local package folder
  package=$(kernel_package)
  if [[ -z "$package" ]]; then
    echo "apt knows no linux-image-amd64; 'apt-get update' first?" >&2
    return 1
  fi
  folder=$1/$package
  if [[ ! -d "$folder" ]]; then
    rm -rf "$folder.partial"
    mkdir -p "$folder.partial"
    unpack_package "$package" "$folder.partial" &&
      unpack_package busybox-static "$folder.partial" || return 1
    mv "$folder.partial" "$folder"
  fi
  echo "$folder"
}

# run_machine <kernel folder> <initrd> <shared folder> <seconds>: until it ends.
# The host's root can be read in it; what is written stays in its memory, but
# for the shared folder. There is no network.
run_machine() {
  local boot=(-kernel "$1"/boot/vmlinuz-* -initrd "$2")
  local host=local,id=host,path=/,security_model=none,readonly=on
  local shared=local,id=shared,path=$3,security_model=none
  timeout --kill-after=5 "$4" qemu-system-x86_64 \
    -accel tcg,thread=multi -cpu max -smp "${CLEW_VM_CPUS:-2}" -m 4096 \
    -nodefaults -nographic -no-reboot -serial stdio "${boot[@]}" \
    -append "console=ttyS0 quiet panic=-1 mitigations=off no_timer_check" \
    -fsdev "$host,multidevs=remap" \
    -device virtio-9p-pci,fsdev=host,mount_tag=host \
    -fsdev "$shared,multidevs=remap" \
    -device virtio-9p-pci,fsdev=shared,mount_tag=shared </dev/null
}
