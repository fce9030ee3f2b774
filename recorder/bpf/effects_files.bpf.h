// Copyright (C) the clew authors.
// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// This file is part of the BPF program inputs.bpf.c.

#ifndef CLEW_RECORDER_BPF_EFFECTS_FILES_BPF_H_
#define CLEW_RECORDER_BPF_EFFECTS_FILES_BPF_H_

#include "recorder/bpf/effects.bpf.h"
#include "recorder/bpf/state.bpf.h"

// Which file an mmap maps: the names of its path, from the file up to the root
// of the mount namespace. Whoever reads them opens it and reads its bytes.

// Copies `size` <= data_bytes from the kernel at `from`.
static __always_inline void CopyName(const __u32 data_bytes, __u32 size,
                                     const void* from,
                                     struct effects* effects) {
  struct RawPiece* piece = ReservePiece(data_bytes, effects);
  if (piece == 0) {
    return;
  }
  asm volatile("" : "+r"(size));  // keeps the bound next to its use
  if (size > data_bytes) {
    size = data_bytes;
  }
  piece->size_bytes = size;
  if (bpf_probe_read_kernel(piece + 1, size, from) != 0) {
    bpf_ringbuf_discard(piece, BPF_RB_NO_WAKEUP);
    effects->unknown |= 1u << kRawFault;
    return;
  }
  Submit(piece);
  ++effects->pieces;
}

static __always_inline void EnterMount(struct effects* effects,
                                       struct mount* mount) {
  effects->mount = (__u64)mount;
  bpf_core_read(&effects->mount_root, sizeof(effects->mount_root),
                &mount->mnt.mnt_root);
}

// For bpf_loop: one name, or from the root of a mount to where that is mounted.
static long NextName(__u32 index, struct effects* effects) {
  if (effects->folder == effects->mount_root) {
    struct mount* const mount = (struct mount*)effects->mount;
    struct mount* above = 0;
    if (bpf_core_read(&above, sizeof(above), &mount->mnt_parent) != 0 ||
        above == mount) {
      effects->at_root = above == mount;
      return 1;
    }
    bpf_core_read(&effects->folder, sizeof(effects->folder),
                  &mount->mnt_mountpoint);
    EnterMount(effects, above);
    return 0;
  }
  struct dentry* const dentry = (struct dentry*)effects->folder;
  struct dentry* parent = 0;
  const unsigned char* name = 0;
  __u32 size = 0;
  bpf_core_read(&parent, sizeof(parent), &dentry->d_parent);
  bpf_core_read(&name, sizeof(name), &dentry->d_name.name);
  bpf_core_read(&size, sizeof(size), &dentry->d_name.len);
  if (parent == 0 || parent == dentry || size == 0 ||
      size > CLEW_RAW_PIECE_MEDIUM) {
    return 1;  // of no folder: a pipe, a memfd
  }
  if (size <= CLEW_RAW_PIECE_SMALL) {
    CopyName(CLEW_RAW_PIECE_SMALL, size, name, effects);
  } else {
    CopyName(CLEW_RAW_PIECE_MEDIUM, size, name, effects);
  }
  effects->folder = (__u64)parent;
  return 0;
}

#define NAMES_MAX 256

static __noinline void NameFile(struct effects* effects, __u32 fd) {
  struct task_struct* task = (struct task_struct*)bpf_get_current_task_btf();
  struct fdtable* const table = task->files->fdt;
  struct file** files = 0;
  struct file* file = 0;
  struct inode* inode = 0;
  struct vfsmount* mount = 0;
  __u64 number = 0;
  if (effects == 0 || fd >= table->max_fds ||
      bpf_core_read(&files, sizeof(files), &table->fd) != 0 ||
      bpf_probe_read_kernel(&file, sizeof(file), &files[fd]) != 0 ||
      bpf_core_read(&inode, sizeof(inode), &file->f_inode) != 0 ||
      bpf_core_read(&number, sizeof(number), &inode->i_ino) != 0 ||
      bpf_core_read(&mount, sizeof(mount), &file->f_path.mnt) != 0 ||
      bpf_core_read(&effects->folder, sizeof(effects->folder),
                    &file->f_path.dentry) != 0) {
    return;
  }
  EnterMount(effects, (struct mount*)((__u64)mount - bpf_core_field_offset(
                                                         struct mount, mnt)));
  effects->addr = 0;
  effects->at_root = 0;
  effects->use = kRawFileName;
  bpf_loop(NAMES_MAX, NextName, effects, 0);
  if (effects->at_root) {
    effects->use = kRawFile;
    CopyName(CLEW_RAW_PIECE_SMALL, sizeof(number), &number, effects);
  }
  effects->use = kRawWritten;
}

#endif  // CLEW_RECORDER_BPF_EFFECTS_FILES_BPF_H_
