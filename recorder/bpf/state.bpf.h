// Copyright (C) the clew authors.
// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// This file is part of the BPF program inputs.bpf.c.

#ifndef CLEW_RECORDER_BPF_STATE_BPF_H_
#define CLEW_RECORDER_BPF_STATE_BPF_H_

#include "recorder/bpf/kernel_types.h"
// After the types that they use.
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "recorder/bpf/raw_event.h"

// What the loader and the program share, and what the program keeps between
// events.

// Set by the loader before it loads.
const volatile __u64 cgroup_id = 0;     // 0: by process
const volatile __u32 cgroup_level = 0;  // depth of that cgroup
const volatile __u32 follow_children = 0;
const volatile __u32 want_outputs = 0;
const volatile __u32 sees_frames = 0;  // PushFrame is attached
const volatile __u32 call_bytes_max = 0;
const volatile __u64 window_bytes_max = 0;  // in a window of the budget
const volatile __u64 wakeup_bytes = 0;

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 4096);  // the loader sets it
} ring SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 4096);
  __type(key, __u32);
  __type(value, __u8);
} processes SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 1024);  // the loader sets it
  __type(key, __u32);
  __type(value, struct RawThread);
} threads SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, CLEW_RAW_RULES);
  __type(key, __u32);
  __type(value, struct RawRule);
} rules SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 1024);  // the loader sets it
  __type(key, struct RawRequest);
  __type(value, struct RawWritten);  // bytes: or CLEW_RAW_REQUEST_UNKNOWN
} requests SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct RawCounts);
} counts SEC(".maps");

struct budget {
  __u64 window;  // number of the current one
  __u64 used_bytes;
};

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct budget);
} budgets SEC(".maps");

static __always_inline struct RawCounts* Counts(void) {
  const __u32 zero = 0;
  return bpf_map_lookup_elem(&counts, &zero);
}

#endif  // CLEW_RECORDER_BPF_STATE_BPF_H_
