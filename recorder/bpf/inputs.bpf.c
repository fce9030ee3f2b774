// Copyright (C) the clew authors.
// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// What comes into watched programs through system calls: results, and the
// memory that the kernel wrote. Runs inside the kernel.
//
// The kernel lends its helpers to programs that declare a GPL-compatible
// licence only; so this file and the *.bpf.h, which are a part of it, are "Dual
// MIT/GPL".

#include "recorder/bpf/effects.bpf.h"
#include "recorder/bpf/effects_frame.bpf.h"
#include "recorder/bpf/effects_rules.bpf.h"
#include "recorder/bpf/ring.bpf.h"
#include "recorder/bpf/state.bpf.h"
#include "recorder/bpf/threads.bpf.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

static __always_inline struct effects EffectsFor(const struct RawThread* state,
                                                 __u32 thread) {
  struct effects effects = {.sequence = state->sequence,
                            .process = state->process,
                            .thread = thread,
                            .use = kRawWritten,
                            .bytes_left = call_bytes_max};
  return effects;
}

// Signals ------------------------------------------------------------------

static __always_inline const struct pt_regs* UserRegisters(void) {
  return (const struct pt_regs*)bpf_task_pt_regs(bpf_get_current_task_btf());
}

// The signal that was taken, with what `effects` has of its frame.
// REQUIRES: BeginUnit was called for it.
static __always_inline void EmitSignal(struct RawThread* state, __u32 thread,
                                       const struct effects* effects) {
  __u32 cause = 0;
  struct RawSignal* signal = Reserve(sizeof(*signal), &cause);
  if (signal == 0) {
    UnitLost(state, cause);
  } else {
    const struct pt_regs* regs = UserRegisters();
    FillHead(&signal->head, kRawSignal, state, thread);
    signal->taken = state->taken;
    signal->entry.ip = regs->ip;
    signal->entry.sp = regs->sp;
    signal->entry.di = regs->di;
    signal->entry.si = regs->si;
    signal->entry.dx = regs->dx;
    signal->entry.ax = regs->ax;
    signal->unknown = effects->unknown;
    signal->pieces = effects->pieces;
    Submit(signal);
    UnitReported(state);
  }
  state->taken.number = 0;
}

// One without a frame: no handler, or none is seen.
static __always_inline void EmitBareSignal(struct RawThread* state,
                                           __u32 thread) {
  BeginUnit(state);
  struct effects effects = EffectsFor(state, thread);
  effects.unknown = 1u << kRawSignalFrame;
  EmitSignal(state, thread, &effects);
}

// The frame of a signal is there, or could not be pushed: SIGSEGV is next then.
// The first program of the file: the kernel verifies them in this order, and
// where it refuses this one it has done no work for nothing.
SEC("fentry/signal_setup_done")
int BPF_PROG(PushFrame, int failed) {
  const __u64 id = bpf_get_current_pid_tgid();
  struct RawThread* state = FindThread((__u32)id);
  if (state == 0 || state->taken.number == 0) {
    return 0;
  }
  if (failed) {
    EmitBareSignal(state, (__u32)id);
    return 0;
  }
  BeginUnit(state);
  struct effects effects = EffectsFor(state, (__u32)id);
  CopyFrame(&effects, UserRegisters()->sp);
  EmitSignal(state, (__u32)id, &effects);
  return 0;
}

// The kernel does no more before it is the handler's turn but push the frame.
SEC("tp_btf/signal_deliver")
int BPF_PROG(DeliverSignal, int number, struct kernel_siginfo* info,
             struct k_sigaction* action) {
  const __u64 id = bpf_get_current_pid_tgid();
  struct RawThread* state = CurrentThread(id);
  if (state == 0) {
    return 0;
  }
  const struct pt_regs* regs = UserRegisters();
  state->taken.handler = (__u64)action->sa.sa_handler;
  state->taken.sa_flags = action->sa.sa_flags;
  state->taken.ip = regs->ip;
  state->taken.sp = regs->sp;
  state->taken.ax = regs->ax;
  state->taken.at_ns = bpf_ktime_get_ns();
  state->taken.number = (__u32)number;
  if (state->taken.handler > 1) {
    state->restarts = 0;  // the handler finds -EINTR
  }
  if (!sees_frames || state->taken.handler <= 1) {
    EmitBareSignal(state, (__u32)id);
  }
  return 0;
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

// exit and exit_group never return. The kernel clears the word that others wait
// for (set_tid_address).
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
  // As restart_syscall the call before goes on, which `state` still has.
  if (number != NR_restart_syscall || !state->restarts) {
    state->number = (__u64)number;
    state->args[0] = regs->di;
    state->args[1] = regs->si;
    state->args[2] = regs->dx;
    state->args[3] = regs->r10;
    state->args[4] = regs->r8;
    state->args[5] = regs->r9;
  }
  state->restarts = 0;
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
  state->restarts = result == -ERESTART_RESTARTBLOCK;
  return 0;
}

// Lives -------------------------------------------------------------------

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
