// What comes into watched programs through system calls: results, and the
// memory that the kernel wrote. Runs inside the kernel.
//
// The kernel lends its helpers to programs that declare a GPL-compatible
// licence only; this file alone is "Dual MIT/GPL".

#include "kernel_types.h"
// After the types that it uses.
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "raw_event.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

// Set by the loader before it loads.
const volatile __u64 cgroup_id = 0;     // 0: by process
const volatile __u32 cgroup_level = 0;  // depth of that cgroup
const volatile __u32 follow_children = 0;
const volatile __u32 want_outputs = 0;
const volatile __u32 call_bytes_max = 0;
const volatile __u64 window_bytes_max = 0;  // in a window of the budget
const volatile __u64 wakeup_bytes = 0;

#define WINDOW_NS 100000000ull

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

// asm/unistd_64.h
enum {
  NR_clone = 56,
  NR_fork = 57,
  NR_vfork = 58,
  NR_exit = 60,
  NR_recvmsg = 47,
  NR_exit_group = 231,
  NR_clone3 = 435,
};

#define EINTR 4
#define TS_COMPAT 2  // asm/thread_info.h

static __always_inline struct RawCounts* Counts(void) {
  const __u32 zero = 0;
  return bpf_map_lookup_elem(&counts, &zero);
}

// Threads ------------------------------------------------------------------

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
    state->process = process;
  }
  return state;
}

// The ring -----------------------------------------------------------------

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

// The reader comes by itself now and then; it is woken when much has come.
static __always_inline void Submit(void* room) {
  const __u64 bytes = bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA);
  bpf_ringbuf_submit(
      room, bytes >= wakeup_bytes ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
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

// Memory -------------------------------------------------------------------

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

// The tables ---------------------------------------------------------------

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
  } else if (written->size == kRawArg) {
    size = other * bytes;
  } else if (written->size == kRawFdSet) {
    size = (state->args[0] + 63) / 64 * 8;
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

static __always_inline void CopyOrUnknown(struct effects* effects, __u64 addr,
                                          __u64 bytes) {
  if (bytes == BYTES_UNKNOWN) {
    effects->unknown |= 1u << kRawNotInTable;
  } else {
    CopyRange(effects, addr, bytes);
  }
}

// linux/sched.h; the kernel writes the new thread's number in two places, one
// of them perhaps later than this.
static __always_inline void AddClone(struct effects* effects, __u64 flags,
                                     __u64 parent, __u64 child, __u32 result) {
  if ((flags & 0x00100000) != 0) {  // CLONE_PARENT_SETTID
    AddWord(effects, parent, result);
  }
  if ((flags & 0x01000000) != 0) {  // CLONE_CHILD_SETTID
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
  if ((args[0] & 0x00001000) != 0) {  // CLONE_PIDFD
    CopyRange(effects, args[1], 4);
  }
}

// linux/futex.h: words that the kernel itself writes.
static __always_inline void CopyFutex(struct effects* effects,
                                      const struct RawThread* state) {
  switch (state->args[1] & 0x7f) {
    case 5:  // FUTEX_WAKE_OP
      CopyRange(effects, state->args[4], 4);
      break;
    case 6:   // FUTEX_LOCK_PI
    case 7:   // FUTEX_UNLOCK_PI
    case 8:   // FUTEX_TRYLOCK_PI
    case 11:  // FUTEX_WAIT_REQUEUE_PI
    case 12:  // FUTEX_CMP_REQUEUE_PI
    case 13:  // FUTEX_LOCK_PI2
      CopyRange(effects, state->args[0], 4);
      break;
    default:
      break;
  }
}

static __noinline void CopySpecial(struct effects* effects,
                                   const struct RawThread* state, __u8 special,
                                   __s64 result) {
  if (state == 0) {
    return;
  }
  switch (special) {
    case kRawIoctl:
      CopyOrUnknown(effects, state->args[2], IoctlBytes((__u32)state->args[1]));
      break;
    case kRawFcntl:
      CopyRange(effects, state->args[2], FcntlBytes(state->args[1]));
      break;
    case kRawPrctl:
      CopyOrUnknown(effects, state->args[1], PrctlBytes(state->args[0]));
      break;
    case kRawArchPrctl:
      if (state->args[0] == 0x1003 || state->args[0] == 0x1004) {  // GET
        CopyRange(effects, state->args[1], 8);
      }
      break;
    case kRawMmap:
      if ((state->args[3] & 0x20) == 0) {  // not MAP_ANONYMOUS
        effects->unknown |= 1u << kRawMappedFile;
      }
      break;
    case kRawClone:
      if (state->number == NR_clone) {
        AddClone(effects, state->args[0], state->args[2], state->args[3],
                 (__u32)result);
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
    CopySpecial(effects, state, rule->special, result);
  }
  if (want_outputs && rule->output != kRawNoOutput) {
    CopyOutput(effects, state, rule->output, result);
  }
}

// Calls --------------------------------------------------------------------

static __always_inline void CountPartial(__u32 unknown) {
  struct RawCounts* count = Counts();
  if (count == 0) {
    return;
  }
  for (__u32 cause = 0; cause < kRawCauses; ++cause) {
    if ((unknown >> cause & 1) != 0) {
      ++count->partial[cause];
    }
  }
}

// REQUIRES: BeginUnit was called for it.
static __always_inline void EmitCall(struct RawThread* state, __u32 thread,
                                     __s64 result, __u32 flags, __u32 unknown,
                                     __u32 pieces) {
  __u32 cause = 0;
  struct RawCall* call = Reserve(sizeof(*call), &cause);
  if (call == 0) {
    UnitLost(state, cause);
    return;
  }
  FillHead(&call->head, kRawCall, state, thread);
  call->number = state->number;
  __builtin_memcpy(call->args, state->args, sizeof(call->args));
  call->result = result;
  call->entered_ns = state->entered_ns;
  call->left_ns = (flags & kRawReturned) != 0 ? bpf_ktime_get_ns() : 0;
  call->flags = flags;
  call->unknown = unknown;
  call->pieces = pieces;
  call->zero = 0;
  Submit(call);
  UnitReported(state);
  if (unknown != 0) {
    CountPartial(unknown);
  }
}

static __always_inline struct effects EffectsFor(const struct RawThread* state,
                                                 __u32 thread) {
  struct effects effects = {.sequence = state->sequence,
                            .process = state->process,
                            .thread = thread,
                            .use = kRawWritten,
                            .bytes_left = call_bytes_max};
  return effects;
}

// exit and exit_group: nobody sees them return. The kernel clears the word that
// others wait for (set_tid_address).
static __always_inline void EmitEndingCall(struct RawThread* state,
                                           __u32 thread) {
  struct effects effects = EffectsFor(state, thread);
  if (state->number == NR_exit) {
    struct task_struct* task = (struct task_struct*)bpf_get_current_task_btf();
    AddWord(&effects, (__u64)task->clear_child_tid, 0);
  }
  EmitCall(state, thread, 0, 0, effects.unknown, effects.pieces);
  state->in_call = 0;
}

// The length that an argument points to, as it is before the call.
static __always_inline __u32 LengthBefore(const struct RawThread* state) {
  const __u32 number = (__u32)state->number;
  __u32 length = 0;
  if (number == NR_recvmsg) {
    bpf_probe_read_user(&length, sizeof(length), (void*)(state->args[1] + 8));
    return length;
  }
  const struct RawRule* rule = bpf_map_lookup_elem(&rules, &number);
  if (rule == 0) {
    return 0;
  }
  for (int i = 0; i < 4; ++i) {
    if (rule->writes[i].size == kRawLengthAt) {
      bpf_probe_read_user(&length, sizeof(length),
                          (void*)Argument(state, rule->writes[i].other));
    }
  }
  return length;
}

static __always_inline int IsCompat(void) {
  struct task_struct* task = (struct task_struct*)bpf_get_current_task_btf();
  return (task->thread_info.status & TS_COMPAT) != 0;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(EnterCall, struct pt_regs* regs, long number) {
  const __u64 id = bpf_get_current_pid_tgid();
  struct RawThread* state = CurrentThread(id);
  if (state == 0) {
    return 0;
  }
  state->number = (__u64)number;
  state->args[0] = regs->di;
  state->args[1] = regs->si;
  state->args[2] = regs->dx;
  state->args[3] = regs->r10;
  state->args[4] = regs->r8;
  state->args[5] = regs->r9;
  state->in_call = 1;
  state->length_before = LengthBefore(state);
  state->entered_ns = bpf_ktime_get_ns();
  if (number == NR_exit || number == NR_exit_group) {
    BeginUnit(state);
    EmitEndingCall(state, (__u32)id);
  }
  return 0;
}

// A new thread or process leaves the call that made it without having entered
// it.
static __always_inline int IsBirth(__u64 number, long result) {
  return result == 0 && (number == NR_clone || number == NR_clone3 ||
                         number == NR_fork || number == NR_vfork);
}

SEC("tp_btf/sys_exit")
int BPF_PROG(LeaveCall, struct pt_regs* regs, long result) {
  const __u64 id = bpf_get_current_pid_tgid();
  struct RawThread* state = CurrentThread(id);
  if (state == 0) {
    return 0;
  }
  const __u32 thread = (__u32)id;
  if (!state->in_call) {
    if (IsBirth(regs->orig_ax, result)) {
      return 0;
    }
    state->number = regs->orig_ax;
    __builtin_memset(state->args, 0, sizeof(state->args));
    state->entered_ns = 0;
    BeginUnit(state);
    EmitCall(state, thread, result, kRawReturned, 1u << kRawBegunBefore, 0);
    return 0;
  }
  BeginUnit(state);
  struct effects effects = EffectsFor(state, thread);
  if (IsCompat()) {
    effects.unknown = 1u << kRawCompat;
  } else {
    CopyEffects(&effects, state, result);
  }
  EmitCall(state, thread, result, kRawReturned, effects.unknown,
           effects.pieces);
  state->in_call = 0;
  return 0;
}

// Signals and lives --------------------------------------------------------

SEC("tp_btf/signal_deliver")
int BPF_PROG(DeliverSignal, int number, struct kernel_siginfo* info,
             struct k_sigaction* action) {
  const __u64 id = bpf_get_current_pid_tgid();
  struct RawThread* state = CurrentThread(id);
  if (state == 0) {
    return 0;
  }
  BeginUnit(state);
  __u32 cause = 0;
  struct RawSignal* signal = Reserve(sizeof(*signal), &cause);
  if (signal == 0) {
    UnitLost(state, cause);
    return 0;
  }
  const struct pt_regs* regs =
      (const struct pt_regs*)bpf_task_pt_regs(bpf_get_current_task_btf());
  FillHead(&signal->head, kRawSignal, state, (__u32)id);
  signal->handler = (__u64)action->sa.sa_handler;
  signal->sa_flags = action->sa.sa_flags;
  signal->ip = regs->ip;
  signal->sp = regs->sp;
  signal->ax = regs->ax;
  signal->at_ns = bpf_ktime_get_ns();
  signal->number = (__u32)number;
  signal->zero = 0;
  Submit(signal);
  UnitReported(state);
  return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(Fork, struct task_struct* parent, struct task_struct* child) {
  const __u32 process = (__u32)parent->tgid;
  const __u32 new_process = (__u32)child->tgid;
  const __u8 one = 1;
  if (cgroup_id == 0 && follow_children && new_process != process &&
      bpf_map_lookup_elem(&processes, &process) != 0) {
    bpf_map_update_elem(&processes, &new_process, &one, BPF_ANY);
  }
  return 0;
}

// `state` stays where the last losses of the thread could not be told.
static __always_inline void EmitEnd(struct RawThread* state, __u32 thread) {
  __u32 cause = 0;
  struct RawEnd* end = Reserve(sizeof(*end), &cause);
  if (end == 0) {
    state->ended = 1;
    return;
  }
  ++state->sequence;
  FillHead(&end->head, kRawEnd, state, thread);
  Submit(end);
  bpf_map_delete_elem(&threads, &thread);
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(ExitThread, struct task_struct* task) {
  const __u64 id = bpf_get_current_pid_tgid();
  const __u32 process = (__u32)(id >> 32);
  const __u32 thread = (__u32)id;
  struct RawThread* state = FindThread(thread);
  if (state != 0 && state->process == process && !state->ended) {
    if (state->in_call) {
      BeginUnit(state);
      EmitCall(state, thread, 0, 0, 0, 0);
      state->in_call = 0;
    }
    EmitEnd(state, thread);
  }
  if (task->signal->live.counter == 0) {
    bpf_map_delete_elem(&processes, &process);
  }
  return 0;
}
