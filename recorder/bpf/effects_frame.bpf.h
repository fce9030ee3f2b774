// Copyright (C) the clew authors.
// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// This file is part of the BPF program inputs.bpf.c.

#ifndef CLEW_RECORDER_BPF_EFFECTS_FRAME_BPF_H_
#define CLEW_RECORDER_BPF_EFFECTS_FRAME_BPF_H_

#include "recorder/bpf/effects.bpf.h"

// What the kernel pushes for a signal's handler: struct rt_sigframe, and above
// it the state of the FPU. Source: linux arch/x86/include/asm/sigframe.h,
// uapi/asm/sigcontext.h and asm-generic/ucontext.h.

#define FRAME_FPSTATE 232  // of struct rt_sigframe, uc.uc_mcontext.fpstate
#define FXSAVE_BYTES 512
#define FXSAVE_SOFTWARE 464      // struct _fpx_sw_bytes
#define XSTATE_MAGIC 0x46505853  // FP_XSTATE_MAGIC1

static __noinline void CopyFrame(struct effects* effects, __u64 frame) {
  __u64 fpu = 0;
  __u32 software[2];  // magic1, extended_size
  if (effects == 0 ||
      !ReadUser(&fpu, sizeof(fpu), frame + FRAME_FPSTATE, effects) ||
      !ReadUser(software, sizeof(software), fpu + FXSAVE_SOFTWARE, effects)) {
    return;
  }
  const __u64 bytes = software[0] == XSTATE_MAGIC ? software[1] : FXSAVE_BYTES;
  if (fpu < frame) {
    effects->unknown |= 1u << kRawSignalFrame;
    return;
  }
  CopyRange(effects, frame, fpu - frame + bytes);
}

#endif  // CLEW_RECORDER_BPF_EFFECTS_FRAME_BPF_H_
