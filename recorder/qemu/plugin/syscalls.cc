// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#include "recorder/qemu/plugin/syscalls.h"

#include <asm/prctl.h>
#include <asm/unistd_64.h>
#include <linux/prctl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "common/linux/request_table.h"
#include "recorder/qemu/plugin/exec.h"
#include "recorder/qemu/plugin/guest_env.h"
#include "recorder/qemu/reservation.h"

namespace clew::recorder {
namespace {

// Of the thread that clone(2) with `args` makes.
DumpedThread FirstRegisters(const GuestEnv& parent, Tid child,
                            const std::array<uint64_t, 6>& args) {
  DumpedThread registers = parent.Registers(child);
  registers.gpr[kRax] = 0;
  if (args[1] != 0) {
    registers.gpr[kRsp] = args[1];
  }
  if ((args[0] & CLONE_SETTLS) != 0) {
    registers.fs_base = args[4];
  }
  return registers;
}

}  // namespace

void Syscalls::Begin(Thread& me, uint64_t number,
                     const std::array<uint64_t, 6>& args) {
  CheckBlock();
  const GuestMemory& memory = parts_.context.memory;
  auto call = BeginSyscall(number, args, memory);
  if (!call) {
    parts_.context.GiveUp(call.error().message);
  }
  if (const Status borne = CheckReservation(number, args, AvailableHostBytes);
      !borne) {
    parts_.context.GiveUp(borne.error().message);
  }
  const auto wait = parts_.waits.HoldUntilDue(me, *call);
  NoteReads(*call);
  me.host_limit_ns = wait ? parts_.waits.ShowLimit(me, *wait)
                          : HostLimit(*call, parts_.context.memory,
                                      parts_.time.clock(), g_runner.block_end);
  parts_.waits.LetBeInterrupted(me, *call);
  CloseBlock(me);
  Enter(me, *call);
}

// Returns with the call about to be made, unless it ends the process.
void Syscalls::Enter(Thread& me, const SyscallCall& call) {
  parts_.signals.EnterSyscall(call.number, call.args);
  me.in_syscall = true;
  me.call = call;
  if (parts_.context.config.encoder.tsc) {
    me.call.entered_tsc = TscTicks(g_runner.block_end);
  }
  if (StartsTimer(call)) {
    parts_.turns.SetUsesTimers();
    if (call.number != __NR_timerfd_settime) {
      parts_.waits.SetTimersSignal();
    }
  }
  if (call.number == __NR_exit_group) {
    parts_.ending.EndByExit(ExitStatusOf(call));
  }
  if (call.number == __NR_exit) {
    Leave(me);
    return;
  }
  if (call.number == __NR_execve) {
    RecordExec(parts_.context, call);
  }
  if (const auto signal = parts_.signals.DeadlySignal(call)) {
    parts_.ending.EndBySignal(*signal);
  }
}

bool Syscalls::MayWait(const Thread& me) const {
  return me.state == Thread::State::kOnCore && !me.limit_is_over &&
         MayBlock(me.call, parts_.context.memory);
}

// No other thread runs between this and the SYSCALL instruction.
void Syscalls::NoteReads(SyscallCall& call) const {
  const SyscallReads reads = ReadsOf(call, parts_.context.memory);
  if (!parts_.waits.ShowsOtherLimit(reads.ranges)) {
    call.read_digest = reads.digest;
  }
}

void Syscalls::CheckBlock() {
  if (g_runner.block == nullptr ||
      g_runner.block->branch_class != x86::BranchClass::kFar) {
    parts_.context.GiveUp("a system call without a SYSCALL instruction");
  }
}

void Syscalls::CloseBlock(Thread& me) {
  g_runner.encoder->AdvanceTime(TscTicks(g_runner.block_end));
  g_runner.encoder->FarTransfer();
  // What SYSCALL does on a CPU and QEMU 7.2 leaves out.
  me.env.set_gpr(kRcx, g_runner.block->next_ip);
  me.env.set_gpr(kR11, me.env.rflags());
  g_runner.block = nullptr;
  me.block = nullptr;
  me.enable_cause = EnableCause::kKernelReturn;
}

// exit(2). The turn goes on in Turns::Forget, when QEMU has cleared the
// thread's id in memory and woken who waits for that.
void Syscalls::Leave(Thread& me) {
  if (std::ranges::all_of(parts_.threads.all(),
                          [&](const Thread* t) { return t == &me; })) {
    parts_.ending.EndByExit(ExitStatusOf(me.call));
  }
  parts_.deviations.NoteThreadEnd(me.robust_list);
  parts_.turns.Exit(me);
}

// QEMU will clear the thread's id, after its CPU is gone. It is done here
// already, because the write belongs to the call.
void Syscalls::RecordExit(Thread& me) {
  const SyscallInput input = InputOf(me.call);
  std::vector<MemoryRange> writes;
  if (parts_.context.memory.Load<uint32_t>(me.clear_tid_addr).has_value()) {
    *GuestPointer<uint32_t>(me.clear_tid_addr) = 0;
    writes.push_back({me.clear_tid_addr, 4});
  }
  me.inputs->Add(input, writes);
  if (const Status closed = parts_.inputs.Close(me); !closed) {
    parts_.context.GiveUp(closed.error().message);
  }
}

void Syscalls::End(Thread& me, int64_t result) {
  if (me.gave_turn) {
    parts_.turns.AwaitReturn(me, result);
  } else {
    parts_.watch.AwaitEnd();
  }
  parts_.waits.RestoreLimit(me);
  if (me.host_limit_ns && EndedByLimit(me.call.number, result)) {
    parts_.timers.EndWait(*me.host_limit_ns);
  }
  if (result == kQemuSigreturn) {
    result = static_cast<int64_t>(me.env.gpr(kRax));
  }
  if (me.call.number == __NR_sched_getaffinity) {
    parts_.cores.Show(me.call, result);
  }
  if (result == 0 && (me.call.number == __NR_clock_gettime ||
                      me.call.number == __NR_gettimeofday)) {
    parts_.timers.CatchUp();
    ShowVirtualTime(me);
  }
  Record(me, result);
  parts_.deviations.Note(me, result);
  me.in_syscall = false;
  FollowUp(me, result);
}

void Syscalls::Record(Thread& me, int64_t result) {
  const auto effects = EffectsOf(me.call, result, parts_.context.memory);
  if (!effects) {
    parts_.context.GiveUp(effects.error().message);
  }
  SyscallInput input = InputOf(me.call);
  input.result = result;
  if (parts_.context.config.encoder.tsc) {
    input.left_tsc = TscTicks(g_runner.block_end);
  }
  input.shared_memory = SharedMemoryOf(me.call, result, parts_.context.memory);
  NoteOutput(*effects, parts_.context.memory, input);
  std::vector<MemoryRange> writes = effects->writes;
  for (const MemoryRange& range :
       parts_.files.ChangedBy(me.call, result, parts_.context.memory)) {
    writes.push_back(range);
  }
  parts_.files.Follow(me.call, result, parts_.context.memory);
  me.inputs->Add(input, writes);
}

void Syscalls::FollowUp(Thread& me, int64_t result) {
  if (result >= 0) {
    parts_.code.Release(me.call, static_cast<uint64_t>(result));
  }
  switch (me.call.number) {
    case __NR_clone:
      return MakesProcess(me.call) ? void() : AfterClone(me, result);
    case __NR_futex:
      return parts_.turns.FutexReturned(ParseFutex(me.call.args), result);
    case __NR_mmap:
    case __NR_mremap:
      return AfterMmap(me, result);
    case __NR_rt_sigaction:
      return result == 0 ? AfterSigaction(me) : void();
    case __NR_rt_sigprocmask:
      return result == 0 ? parts_.signals.MaskChanged(me) : void();
    case __NR_arch_prctl:
      return CheckFsBase(me, result);
    case __NR_set_tid_address:
      me.clear_tid_addr = me.call.args[0];
      return;
    case __NR_set_robust_list:
      me.robust_list = me.call.args[0];
      return;
    case __NR_prctl:
      if (RequestIn(me.call.args[0]) == PR_SET_NAME && result == 0) {
        parts_.context.tracer->Comm(
            me.core, me.tid, g_runner.block_end, false,
            parts_.context.memory.Text(me.call.args[1], 15));
      }
      return;
    default:
      return;
  }
}

void Syscalls::AfterClone(Thread& me, int64_t result) {
  Thread* const child = parts_.threads.TakeNewborn();
  if (result < 0) {
    return;
  }
  if (child == nullptr) {
    parts_.context.GiveUp("clone made a thread that QEMU did not announce");
  }
  child->tid = Tid(static_cast<int32_t>(result));
  child->parent = me.tid;
  child->first_registers = FirstRegisters(me.env, child->tid, me.call.args);
  child->signal_mask = me.signal_mask;
  child->affinity = me.affinity;
  if ((me.call.args[0] & CLONE_CHILD_CLEARTID) != 0) {
    child->clear_tid_addr = me.call.args[3];
  }
  parts_.inputs.Open(*child);
  parts_.context.tracer->Fork(me.core, me.tid, child->tid, g_runner.block_end);
  parts_.turns.AddReady(*child);
}

void Syscalls::AfterMmap(const Thread& me, int64_t result) {
  if (result > 0) {
    parts_.start.NoteMapping(static_cast<uint64_t>(result));
  }
  if (const auto path = CodeFileOf(me.call, result, parts_.context.memory)) {
    const ExecMapping mapping = CodeMappedBy(me.call, result, *path);
    parts_.context.tracer->Mmap(me.core, me.tid, g_runner.block_end, mapping);
    parts_.code.Map(mapping);
  }
}

void Syscalls::AfterSigaction(const Thread& me) {
  if (const auto handler = parts_.signals.ActionChanged(me.call)) {
    parts_.code.AddHandler(*handler);
  }
}

void Syscalls::CheckFsBase(const Thread& me, int64_t result) {
  if (RequestIn(me.call.args[0]) == ARCH_SET_FS && result == 0 &&
      me.env.fs_base() != me.call.args[1]) {
    parts_.context.GiveUp(
        fmt::format("this QEMU keeps the FS base elsewhere than version 7.2 "
                    "(found {:#x}, expected {:#x}); install Debian 12's "
                    "qemu-user",
                    me.env.fs_base(), me.call.args[1]));
  }
}

// Clocks that the program reads show the virtual one. The kernel has just
// written there.
void Syscalls::ShowVirtualTime(const Thread& me) const {
  const bool is_clock = me.call.number == __NR_clock_gettime;
  const uint64_t at = me.call.args[is_clock ? 1 : 0];
  const auto time = parts_.time.clock().Show(
      is_clock ? me.call.args[0] : CLOCK_REALTIME, g_runner.block_end);
  if (!time || at == 0) {
    return;
  }
  if (is_clock) {
    *GuestPointer<timespec>(at) = *time;
  } else {
    *GuestPointer<timeval>(at) = {.tv_sec = time->tv_sec,
                                  .tv_usec = time->tv_nsec / 1000};
  }
}

std::optional<time_t> Syscalls::SecondsOfCall(const Thread& me) const {
  if (!me.in_syscall || me.call.number != __NR_time) {
    return std::nullopt;
  }
  parts_.timers.CatchUp();
  const auto time =
      parts_.time.clock().Show(CLOCK_REALTIME, g_runner.block_end);
  return time ? std::optional(time->tv_sec) : std::nullopt;
}

}  // namespace clew::recorder
