// Copyright (C) the clew authors.
// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// This file is part of the BPF program inputs.bpf.c.

#ifndef CLEW_RECORDER_BPF_EFFECTS_BPF_H_
#define CLEW_RECORDER_BPF_EFFECTS_BPF_H_

#include "recorder/bpf/ring.bpf.h"
#include "recorder/bpf/state.bpf.h"

// Memory of the program that a call wrote or read, copied piece by piece.

// A call whose effects are being copied.
struct effects {
  __u64 sequence;
  __u32 process;
  __u32 thread;
  __u32 use;      // RawPieceUse
  __u32 unknown;  // causes
  __u32 pieces;
  __u32 bytes_left;  // of call_bytes_max
  __u64 addr;        // the range at hand
  __u64 size;
  // A vector at hand.
  __u64 vector;
  __u64 entries;
  __u64 total;
  // Messages at hand.
  __u64 messages;
  __u64 message_count;
  // Where a walk up a path is; kernel addresses.
  __u64 folder;      // struct dentry
  __u64 mount;       // struct mount, which it is in
  __u64 mount_root;  // struct dentry
  int at_root;       // the walk has ended there
};

static __always_inline struct RawPiece* ReservePiece(const __u32 data_bytes,
                                                     struct effects* effects) {
  __u32 cause = 0;
  struct RawPiece* piece =
      Reserve(sizeof(struct RawPiece) + data_bytes, &cause);
  if (piece == 0) {
    effects->unknown |= 1u << cause;
    return 0;
  }
  piece->head.kind = kRawPiece;
  piece->head.process = effects->process;
  piece->head.thread = effects->thread;
  piece->head.lost = 0;
  piece->head.causes = 0;
  piece->head.zero = 0;
  piece->head.sequence = effects->sequence;
  piece->addr = effects->addr;
  piece->use = effects->use;
  return piece;
}

// Copies `size` <= data_bytes from the program, 0 if it was not all there.
static __always_inline int CopyPiece(const __u32 data_bytes, __u32 size,
                                     struct effects* effects) {
  struct RawPiece* piece = ReservePiece(data_bytes, effects);
  if (piece == 0) {
    return 0;
  }
  asm volatile("" : "+r"(size));  // keeps the bound next to its use
  if (size > data_bytes) {
    size = data_bytes;
  }
  piece->size_bytes = size;
  if (bpf_probe_read_user(piece + 1, size, (void*)effects->addr) != 0) {
    bpf_ringbuf_discard(piece, BPF_RB_NO_WAKEUP);
    effects->unknown |= 1u << kRawFault;
    return 0;
  }
  Submit(piece);
  ++effects->pieces;
  return 1;
}

// For bpf_loop: up to 4 KiB of the range at hand.
static long NextPiece(__u32 index, struct effects* effects) {
  if (effects->size == 0) {
    return 1;
  }
  const __u32 size = effects->size > CLEW_RAW_PIECE_LARGE
                         ? CLEW_RAW_PIECE_LARGE
                         : (__u32)effects->size;
  if (size > effects->bytes_left) {
    effects->unknown |= 1u << kRawTooLong;
    return 1;
  }
  int copied = 0;
  if (size <= CLEW_RAW_PIECE_SMALL) {
    copied = CopyPiece(CLEW_RAW_PIECE_SMALL, size, effects);
  } else if (size <= CLEW_RAW_PIECE_MEDIUM) {
    copied = CopyPiece(CLEW_RAW_PIECE_MEDIUM, size, effects);
  } else {
    copied = CopyPiece(CLEW_RAW_PIECE_LARGE, size, effects);
  }
  effects->addr += size;
  effects->size -= size;
  effects->bytes_left -= size;
  return copied ? 0 : 1;
}

#define PIECES_MAX 4096  // times 4 KiB; call_bytes_max ends it before

static __always_inline void CopyRange(struct effects* effects, __u64 addr,
                                      __u64 size) {
  if (addr == 0 || size == 0) {
    return;
  }
  effects->addr = addr;
  effects->size = size;
  bpf_loop(PIECES_MAX, NextPiece, effects, 0);
}

// A value that the kernel is known to write, whether it has by now or not.
static __always_inline void AddWord(struct effects* effects, __u64 addr,
                                    __u32 value) {
  if (addr == 0) {
    return;
  }
  effects->addr = addr;
  struct RawPiece* piece = ReservePiece(CLEW_RAW_PIECE_SMALL, effects);
  if (piece == 0) {
    return;
  }
  piece->size_bytes = sizeof(value);
  __builtin_memcpy(piece + 1, &value, sizeof(value));
  Submit(piece);
  ++effects->pieces;
}

static __always_inline int ReadUser(void* to, __u32 bytes, __u64 addr,
                                    struct effects* effects) {
  if (bpf_probe_read_user(to, bytes, (void*)addr) == 0) {
    return 1;
  }
  effects->unknown |= 1u << kRawFault;
  return 0;
}

// For bpf_loop: one entry of an iovec array.
static long NextVectorEntry(__u32 index, struct effects* effects) {
  __u64 entry[2];
  if (index >= effects->entries || effects->total == 0 ||
      !ReadUser(entry, sizeof(entry), effects->vector + 16ull * index,
                effects)) {
    return 1;
  }
  const __u64 step = entry[1] < effects->total ? entry[1] : effects->total;
  effects->total -= step;
  CopyRange(effects, entry[0], step);
  return 0;
}

#define IOVEC_MAX 1024  // UIO_MAXIOV

static __always_inline void CopyVector(struct effects* effects, __u64 vector,
                                       __u64 entries, __u64 total) {
  effects->vector = vector;
  effects->entries = entries;
  effects->total = total;
  bpf_loop(IOVEC_MAX, NextVectorEntry, effects, 0);
}

#endif  // CLEW_RECORDER_BPF_EFFECTS_BPF_H_
