// Copyright (C) the clew authors.
// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// This file is part of the BPF program inputs.bpf.c.

#ifndef CLEW_RECORDER_BPF_EFFECTS_REQUESTS_BPF_H_
#define CLEW_RECORDER_BPF_EFFECTS_REQUESTS_BPF_H_

#include "common/linux/ioctl_size.h"
#include "recorder/bpf/effects.bpf.h"

// What a request writes (common/linux/request_table.h): as many bytes as the
// map `requests` says, which the loader fills; CLEW_RAW_REQUEST_UNKNOWN: that
// cannot be told.

static __noinline __u32 RequestBytes(__u32 number, __u32 request) {
  const struct RawRequest key = {.number = number, .request = request};
  const __u32* bytes = bpf_map_lookup_elem(&requests, &key);
  if (bytes != 0) {
    return *bytes;
  }
  if (number != NR_ioctl || IoctlArgumentBytes(request) == 0) {
    return CLEW_RAW_REQUEST_UNKNOWN;
  }
  return IoctlWrittenBytes(request);
}

static __always_inline void CopyRequest(struct effects* effects, __u32 number,
                                        __u32 request, __u64 addr) {
  const __u32 bytes = RequestBytes(number, request);
  if (bytes == CLEW_RAW_REQUEST_UNKNOWN) {
    effects->unknown |= 1u << kRawNotInTable;
  } else {
    CopyRange(effects, addr, bytes);
  }
}

#endif  // CLEW_RECORDER_BPF_EFFECTS_REQUESTS_BPF_H_
