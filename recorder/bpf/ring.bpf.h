// Copyright (C) the clew authors.
// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// This file is part of the BPF program inputs.bpf.c.

#ifndef CLEW_RECORDER_BPF_RING_BPF_H_
#define CLEW_RECORDER_BPF_RING_BPF_H_

#include "recorder/bpf/state.bpf.h"

// Events on their way out: room in the ring, within a budget, and what is
// counted where there is none.

#define WINDOW_NS 100000000ull

// So many bytes in each window of time, over all CPUs. Two CPUs that open a
// window at once may both clear it: the bound is then that of two windows.
static __always_inline int WithinBudget(__u64 bytes) {
  const __u32 zero = 0;
  struct budget* budget = bpf_map_lookup_elem(&budgets, &zero);
  if (budget == 0) {
    return 0;
  }
  const __u64 window = bpf_ktime_get_ns() / WINDOW_NS;
  if (budget->window != window) {
    budget->window = window;
    budget->used_bytes = 0;
  }
  if (budget->used_bytes + bytes > window_bytes_max) {
    return 0;
  }
  __sync_fetch_and_add(&budget->used_bytes, bytes);
  return 1;
}

// Room in the ring, or 0 and the cause.
static __always_inline void* Reserve(const __u64 bytes, __u32* cause) {
  if (!WithinBudget(bytes)) {
    *cause = kRawBudget;
    return 0;
  }
  void* room = bpf_ringbuf_reserve(&ring, bytes, 0);
  if (room == 0) {
    *cause = kRawRingFull;
  }
  return room;
}

// When the reader was woken last, by bpf_ktime_get_ns. CPUs may miss one
// another's.
static __u64 woken_ns;
#define CLEW_WAKEUP_PAUSE_NS 1000000

// The reader comes by itself now and then; it is woken when much has come. One
// that is late is not woken by every event until it comes: each of these
// interrupts takes longer than the call that the event is of.
static __always_inline void Submit(void* room) {
  __u64 flags = BPF_RB_NO_WAKEUP;
  if (bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) >= wakeup_bytes) {
    const __u64 now_ns = bpf_ktime_get_ns();
    if (now_ns - woken_ns >= CLEW_WAKEUP_PAUSE_NS) {
      woken_ns = now_ns;
      flags = BPF_RB_FORCE_WAKEUP;
    }
  }
  bpf_ringbuf_submit(room, flags);
}

static __always_inline void FillHead(struct RawHead* head, __u32 kind,
                                     const struct RawThread* state,
                                     __u32 thread) {
  head->kind = kind;
  head->process = state->process;
  head->thread = thread;
  head->lost = state->lost;
  head->causes = state->causes;
  head->zero = 0;
  head->sequence = state->sequence;
}

// A unit of the thread begins: one more, whatever becomes of it.
static __always_inline void BeginUnit(struct RawThread* state) {
  ++state->sequence;
  struct RawCounts* count = Counts();
  if (count != 0) {
    ++count->units;
  }
}

static __always_inline void UnitLost(struct RawThread* state, __u32 cause) {
  ++state->lost;
  state->causes |= 1u << cause;
  struct RawCounts* count = Counts();
  if (count != 0 && cause < kRawCauses) {
    ++count->lost[cause];
  }
}

static __always_inline void UnitReported(struct RawThread* state) {
  state->lost = 0;
  state->causes = 0;
  struct RawCounts* count = Counts();
  if (count != 0) {
    ++count->reported;
  }
}

#endif  // CLEW_RECORDER_BPF_RING_BPF_H_
