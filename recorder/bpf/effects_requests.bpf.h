// Copyright (C) the clew authors.
// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// This file is part of the BPF program inputs.bpf.c.

#ifndef CLEW_RECORDER_BPF_EFFECTS_REQUESTS_BPF_H_
#define CLEW_RECORDER_BPF_EFFECTS_REQUESTS_BPF_H_

#include "recorder/bpf/effects.bpf.h"

// What ioctl, fcntl and prctl write: how much depends on the request.

#define BYTES_UNKNOWN (~0ull)

// asm-generic/ioctls.h. Requests made by _IOR and _IOWR say their size.
static __noinline __u64 IoctlBytes(__u32 request) {
  switch (request) {
    case 0x5401:  // TCGETS, struct termios
      return 36;
    case 0x5413:  // TIOCGWINSZ
    case 0x5460:  // FIOQSIZE
      return 8;
    case 0x540f:  // TIOCGPGRP
    case 0x5411:  // TIOCOUTQ
    case 0x541b:  // FIONREAD
    case 0x5429:  // TIOCGSID
      return 4;
    case 0x5402:  // TCSETS
    case 0x5403:  // TCSETSW
    case 0x5404:  // TCSETSF
    case 0x5409:  // TCSBRK
    case 0x540b:  // TCFLSH
    case 0x540e:  // TIOCSCTTY
    case 0x5410:  // TIOCSPGRP
    case 0x5414:  // TIOCSWINSZ
    case 0x5421:  // FIONBIO
    case 0x5422:  // TIOCNOTTY
    case 0x5450:  // FIONCLEX
    case 0x5451:  // FIOCLEX
    case 0x5452:  // FIOASYNC
      return 0;
    default:
      break;
  }
  const __u32 type = request >> 8 & 0xff;
  const __u32 size = request >> 16 & 0x3fff;
  if (type == 0 || size == 0) {
    return BYTES_UNKNOWN;
  }
  return (request >> 30 & 2) != 0 ? size : 0;
}

// linux/fcntl.h
static __always_inline __u64 FcntlBytes(__u64 command) {
  switch (command) {
    case 5:   // F_GETLK, struct flock
    case 36:  // F_OFD_GETLK
      return 32;
    case 16:  // F_GETOWN_EX
      return 8;
    default:
      return 0;
  }
}

// linux/prctl.h
static __noinline __u64 PrctlBytes(__u64 option) {
  switch (option) {
    case 16:  // PR_GET_NAME
      return 16;
    case 2:   // PR_GET_PDEATHSIG
    case 25:  // PR_GET_TSC
      return 4;
    case 1:           // PR_SET_PDEATHSIG
    case 3:           // PR_GET_DUMPABLE
    case 4:           // PR_SET_DUMPABLE
    case 7:           // PR_GET_KEEPCAPS
    case 8:           // PR_SET_KEEPCAPS
    case 15:          // PR_SET_NAME
    case 23:          // PR_CAPBSET_READ
    case 29:          // PR_SET_TIMERSLACK
    case 30:          // PR_GET_TIMERSLACK
    case 36:          // PR_SET_CHILD_SUBREAPER
    case 38:          // PR_SET_NO_NEW_PRIVS
    case 39:          // PR_GET_NO_NEW_PRIVS
    case 0x53564d41:  // PR_SET_VMA
    case 0x59616d61:  // PR_SET_PTRACER
      return 0;
    default:
      return BYTES_UNKNOWN;
  }
}

#define IPC_64 0x100u

// linux/sem.h
static __always_inline __u64 SemaphoreControlBytes(__u64 command) {
  switch ((__u32)command & ~IPC_64) {
    case 13:  // GETALL: as many as the set has
      return BYTES_UNKNOWN;
    case 2:   // IPC_STAT, struct semid64_ds
    case 18:  // SEM_STAT
    case 20:  // SEM_STAT_ANY
      return 104;
    case 3:   // IPC_INFO, struct seminfo
    case 19:  // SEM_INFO
      return 40;
    default:
      return 0;
  }
}

// linux/msg.h
static __always_inline __u64 MessageControlBytes(__u64 command) {
  switch ((__u32)command & ~IPC_64) {
    case 2:   // IPC_STAT, struct msqid64_ds
    case 11:  // MSG_STAT
    case 13:  // MSG_STAT_ANY
      return 120;
    case 3:   // IPC_INFO, struct msginfo
    case 12:  // MSG_INFO
      return 32;
    default:
      return 0;
  }
}

// linux/shm.h
static __always_inline __u64 SharedMemoryControlBytes(__u64 command) {
  switch ((__u32)command & ~IPC_64) {
    case 2:   // IPC_STAT, struct shmid64_ds
    case 13:  // SHM_STAT
    case 15:  // SHM_STAT_ANY
      return 112;
    case 3:  // IPC_INFO, struct shminfo64
      return 72;
    case 14:  // SHM_INFO, struct shm_info
      return 48;
    default:
      return 0;
  }
}

static __always_inline void CopyOrUnknown(struct effects* effects, __u64 addr,
                                          __u64 bytes) {
  if (bytes == BYTES_UNKNOWN) {
    effects->unknown |= 1u << kRawNotInTable;
  } else {
    CopyRange(effects, addr, bytes);
  }
}

#endif  // CLEW_RECORDER_BPF_EFFECTS_REQUESTS_BPF_H_
