// Copyright (C) the clew authors.
// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// This file is part of the BPF program inputs.bpf.c.

#ifndef CLEW_RECORDER_BPF_EFFECTS_RULES_BPF_H_
#define CLEW_RECORDER_BPF_EFFECTS_RULES_BPF_H_

#include "common/linux/ioctl_size.h"
#include "recorder/bpf/effects.bpf.h"
#include "recorder/bpf/effects_files.bpf.h"
#include "recorder/bpf/effects_messages.bpf.h"
#include "recorder/bpf/effects_threads.bpf.h"
#include "recorder/bpf/state.bpf.h"

// What any call writes and puts out, by the rules that the loader gives.

static __always_inline __u64 Argument(const struct RawThread* state,
                                      __u8 index) {
  switch (index) {
    case 0:
      return state->args[0];
    case 1:
      return state->args[1];
    case 2:
      return state->args[2];
    case 3:
      return state->args[3];
    case 4:
      return state->args[4];
    default:
      return state->args[5];
  }
}

static __noinline void CopyWritten(struct effects* effects,
                                   const struct RawThread* state,
                                   const struct RawWritten* written,
                                   __s64 result) {
  if (state == 0 || written == 0) {
    return;
  }
  const __u64 addr = Argument(state, written->arg);
  const __u64 other = Argument(state, written->other);
  const __u64 bytes = written->bytes;
  if (written->size == kRawOnInterrupt) {
    // -516: nanosleep, which becomes -EINTR if a handler runs.
    if (result == -EINTR || result == -516) {
      CopyRange(effects, addr, bytes);
    }
    return;
  }
  if (result < 0) {
    return;
  }
  __u64 size = 0;
  if (written->size == kRawFixed) {
    size = bytes;
  } else if (written->size == kRawResult) {
    size = (__u64)result * bytes;
  } else if (written->size == kRawCounted) {
    size = other * bytes;
  } else if (written->size == kRawFdSet) {
    size = (state->args[0] + 63) / 64 * 8;
  } else if (written->size == kRawPages) {
    size = (other + 4095) / 4096;
  } else if (written->size == kRawBits) {
    size = (other + 62) / 64 * 8;
  } else if (written->size == kRawVector) {
    CopyVector(effects, addr, other, (__u64)result);
    return;
  } else if (written->size == kRawLengthAt) {
    __u32 after = 0;
    if (other == 0 || !ReadUser(&after, sizeof(after), other, effects)) {
      return;
    }
    CopyRange(effects, addr,
              after < state->length_before ? after : state->length_before);
    CopyRange(effects, other, sizeof(after));
    return;
  }
  if (written->limit != CLEW_RAW_NO_LIMIT) {
    const __u64 limit = Argument(state, written->limit);
    size = size < limit ? size : limit;
  }
  CopyRange(effects, addr, size);
}

// What a request writes (common/linux/request_table.h): what the map `requests`
// says, which the loader fills.

static __always_inline void CopyRequest(struct effects* effects,
                                        const struct RawThread* state,
                                        __u8 argument, __s64 result) {
  const struct RawRequest key = {.number = (__u32)state->number,
                                 .request = (__u32)Argument(state, argument)};
  const struct RawWritten* written = bpf_map_lookup_elem(&requests, &key);
  if (written != 0 && written->bytes != CLEW_RAW_REQUEST_UNKNOWN) {
    CopyWritten(effects, state, written, result);
  } else if (written == 0 && key.number == NR_ioctl &&
             IoctlArgumentBytes(key.request) != 0) {
    CopyRange(effects, Argument(state, (__u8)(argument + 1)),
              IoctlWrittenBytes(key.request));
  } else {
    effects->unknown |= 1u << kRawNotInTable;
  }
}

static __noinline void CopySpecial(struct effects* effects,
                                   const struct RawThread* state,
                                   const struct RawRule* rule, __s64 result) {
  if (state == 0 || rule == 0) {
    return;
  }
  switch (rule->special) {
    case kRawRequest:
      CopyRequest(effects, state, rule->request, result);
      break;
    case kRawMmap:
      if ((state->args[3] & 0x20) == 0) {  // not MAP_ANONYMOUS
        NameFile(effects, (__u32)state->args[4]);
        effects->unknown |= 1u << kRawMappedFile;
      }
      break;
    case kRawClone:
      if (state->number == NR_clone) {
        AddClone(effects, state->args[0], state->args[2], state->args[3],
                 (__u32)result);
        if ((state->args[0] & CLONE_PIDFD) != 0) {
          CopyRange(effects, state->args[2], 4);
        }
      } else {
        CopyClone3(effects, state->args[0], (__u32)result);
      }
      break;
    case kRawFutex:
      CopyFutex(effects, state);
      break;
    case kRawReceiveMessage:
      CopyMessage(effects, state->args[1], (__u64)result, state->length_before);
      break;
    case kRawReceiveMessages:
      effects->messages = state->args[1];
      effects->message_count = (__u64)result;
      bpf_loop(MESSAGES_MAX, NextMessage, effects, 0);
      break;
    case kRawSendMessages:  // the length sent, in each mmsghdr
      CopyRange(effects, state->args[1], (__u64)result * 64);
      break;
    case kRawMessageReceive:  // the type, then the text
      CopyRange(effects, state->args[1], 8 + (__u64)result);
      break;
    case kRawSharedMemory:
      effects->unknown |= 1u << kRawMappedFile;
      break;
    case kRawOtherMemory:
      if ((__u32)state->args[0] == (__u32)(bpf_get_current_pid_tgid() >> 32)) {
        CopyVector(effects, state->args[3], state->args[4], (__u64)result);
      }
      break;
    case kRawFailsOnly:
      effects->unknown |= 1u << kRawNotInTable;
      break;
    default:
      break;
  }
}

static __noinline void CopyOutput(struct effects* effects,
                                  const struct RawThread* state, __u8 output,
                                  __s64 result) {
  if (state == 0 || result <= 0) {
    return;
  }
  const __u32 unknown = effects->unknown;
  effects->use = kRawOutput;
  if (output == kRawOutputBuffer) {
    CopyRange(effects, state->args[1], (__u64)result);
  } else if (output == kRawOutputVector) {
    CopyVector(effects, state->args[1], state->args[2], (__u64)result);
  } else if (output == kRawOutputMessage) {
    __u64 vector[2];  // iov and iovlen of struct user_msghdr
    if (ReadUser(vector, sizeof(vector), state->args[1] + 16, effects)) {
      CopyVector(effects, vector[0], vector[1], (__u64)result);
    }
  }
  // What the program gets is known without.
  effects->unknown = unknown;
}

static __always_inline void CopyEffects(struct effects* effects,
                                        const struct RawThread* state,
                                        __s64 result) {
  if (state == 0) {
    return;
  }
  const __u32 number = (__u32)state->number;
  const struct RawRule* rule = bpf_map_lookup_elem(&rules, &number);
  if (rule == 0 || !rule->known || number != state->number) {
    effects->unknown |= 1u << kRawNotInTable;
    return;
  }
  CopyWritten(effects, state, &rule->writes[0], result);
  CopyWritten(effects, state, &rule->writes[1], result);
  CopyWritten(effects, state, &rule->writes[2], result);
  CopyWritten(effects, state, &rule->writes[3], result);
  if (result >= 0 && rule->special != kRawNotSpecial) {
    CopySpecial(effects, state, rule, result);
  }
  if (want_outputs && rule->output != kRawNoOutput) {
    CopyOutput(effects, state, rule->output, result);
  }
}

#endif  // CLEW_RECORDER_BPF_EFFECTS_RULES_BPF_H_
