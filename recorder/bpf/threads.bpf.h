// Copyright (C) the clew authors.
// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// This file is part of the BPF program inputs.bpf.c.

#ifndef CLEW_RECORDER_BPF_THREADS_BPF_H_
#define CLEW_RECORDER_BPF_THREADS_BPF_H_

#include "recorder/bpf/state.bpf.h"

// Which threads are watched, and their state.

static __always_inline int IsWatched(__u32 process) {
  if (cgroup_id != 0) {
    return bpf_get_current_ancestor_cgroup_id((int)cgroup_level) == cgroup_id;
  }
  return bpf_map_lookup_elem(&processes, &process) != 0;
}

static __always_inline struct RawThread* FindThread(__u32 thread) {
  return bpf_map_lookup_elem(&threads, &thread);
}

static struct RawThread* AddThread(__u32 process, __u32 thread) {
  const struct RawThread fresh = {.process = process};
  bpf_map_update_elem(&threads, &thread, &fresh, BPF_ANY);
  return FindThread(thread);
}

// The state of the current thread if it is watched, made where there is none.
static __always_inline struct RawThread* CurrentThread(__u64 id) {
  const __u32 process = (__u32)(id >> 32);
  const __u32 thread = (__u32)id;
  if (!IsWatched(process)) {
    return 0;
  }
  struct RawThread* state = FindThread(thread);
  if (state == 0) {
    state = AddThread(process, thread);
  }
  if (state == 0) {
    struct RawCounts* count = Counts();
    if (count != 0) {
      ++count->untracked;
    }
  } else if (state->ended) {
    // A new thread with the number of one whose end could not be told; its
    // losses are told with the first event of this one.
    state->ended = 0;
    state->in_call = 0;
    state->taken.number = 0;
    state->process = process;
  }
  return state;
}

#endif  // CLEW_RECORDER_BPF_THREADS_BPF_H_
