// Copyright (C) the clew authors.
// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// This file is part of the BPF program inputs.bpf.c.

#ifndef CLEW_RECORDER_BPF_EFFECTS_THREADS_BPF_H_
#define CLEW_RECORDER_BPF_EFFECTS_THREADS_BPF_H_

#include "recorder/bpf/effects.bpf.h"
#include "recorder/bpf/state.bpf.h"

// What clone, clone3 and futex write: words that threads share with the kernel.

// The kernel writes the new thread's number in two places, one
// of them perhaps later than this; that is in the new thread's memory.
static __always_inline void AddClone(struct effects* effects, __u64 flags,
                                     __u64 parent, __u64 child, __u32 result) {
  if ((flags & CLONE_PARENT_SETTID) != 0) {
    AddWord(effects, parent, result);
  }
  if ((flags & CLONE_CHILD_SETTID) != 0 && (flags & CLONE_VM) != 0) {
    AddWord(effects, child, result);
  }
}

// struct clone_args: flags, pidfd, child_tid, parent_tid, ...
static __noinline void CopyClone3(struct effects* effects, __u64 addr,
                                  __u32 result) {
  __u64 args[4];
  if (!ReadUser(args, sizeof(args), addr, effects)) {
    return;
  }
  AddClone(effects, args[0], args[3], args[2], result);
  if ((args[0] & CLONE_PIDFD) != 0) {
    CopyRange(effects, args[1], 4);
  }
}

// Words that the kernel itself writes.
static __always_inline void CopyFutex(struct effects* effects,
                                      const struct RawThread* state) {
  switch ((int)state->args[1] & FUTEX_CMD_MASK) {
    case FUTEX_WAKE_OP:
      CopyRange(effects, state->args[4], 4);
      break;
    case FUTEX_LOCK_PI:
    case FUTEX_UNLOCK_PI:
    case FUTEX_TRYLOCK_PI:
    case FUTEX_WAIT_REQUEUE_PI:
    case FUTEX_CMP_REQUEUE_PI:
    case FUTEX_LOCK_PI2:
      CopyRange(effects, state->args[0], 4);
      break;
    default:
      break;
  }
}

#endif  // CLEW_RECORDER_BPF_EFFECTS_THREADS_BPF_H_
