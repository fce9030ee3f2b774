// Copyright (C) the clew authors.
// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// This file is part of the BPF program inputs.bpf.c.

#ifndef CLEW_RECORDER_BPF_EFFECTS_MESSAGES_BPF_H_
#define CLEW_RECORDER_BPF_EFFECTS_MESSAGES_BPF_H_

#include "recorder/bpf/effects.bpf.h"

// What recvmsg and recvmmsg write.

// struct user_msghdr: name, namelen, iov, iovlen, control, controllen, flags.
#define MESSAGE_BYTES 56

static __noinline void CopyMessage(struct effects* effects, __u64 header,
                                   __u64 received, __u32 name_bytes_max) {
  __u64 message[7];
  if (!ReadUser(message, sizeof(message), header, effects)) {
    return;
  }
  CopyVector(effects, message[2], message[3], received);
  const __u32 name_bytes = (__u32)message[1];
  CopyRange(effects, message[0],
            name_bytes < name_bytes_max ? name_bytes : name_bytes_max);
  CopyRange(effects, message[4], message[5]);
  CopyRange(effects, header, MESSAGE_BYTES);
}

// For bpf_loop: one struct mmsghdr, a msghdr and how many bytes it got.
#define MESSAGES_MAX 1024  // UIO_MAXIOV
#define MMSGHDR_BYTES 64

static long NextMessage(__u32 index, struct effects* effects) {
  if (index >= effects->message_count) {
    return 1;
  }
  const __u64 entry = effects->messages + (__u64)index * MMSGHDR_BYTES;
  __u32 received = 0;
  if (!ReadUser(&received, sizeof(received), entry + MESSAGE_BYTES, effects)) {
    return 1;
  }
  // How long a name's buffer was is not known any more.
  CopyMessage(effects, entry, received, 128);
  CopyRange(effects, entry + MESSAGE_BYTES, sizeof(received));
  return 0;
}

#endif  // CLEW_RECORDER_BPF_EFFECTS_MESSAGES_BPF_H_
