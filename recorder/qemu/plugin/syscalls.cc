// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#include <asm/prctl.h>
#include <asm/unistd_64.h>
#include <linux/prctl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "common/digest.h"
#include "recorder/qemu/plugin/pin.h"
#include "recorder/qemu/plugin/recording.h"
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

uint64_t DigestOf(const std::vector<MemoryRange>& ranges,
                  const GuestMemory& memory, uint64_t& bytes) {
  uint64_t digest = kEmptyDigest;
  std::array<std::byte, kPageBytes> chunk;
  for (const MemoryRange& range : ranges) {
    for (uint64_t at = 0; at < range.size_bytes; at += chunk.size()) {
      const auto step = static_cast<size_t>(
          std::min<uint64_t>(chunk.size(), range.size_bytes - at));
      if (memory.Read(range.addr + at, chunk.data(), step)) {
        digest = Digest(std::span(chunk).first(step), digest);
      }
    }
    bytes += range.size_bytes;
  }
  return digest;
}

// Not "/memfd:name (deleted)" and the like.
bool IsRegularFile(const std::string& path) {
  struct stat info = {};
  return path.starts_with('/') && stat(path.c_str(), &info) == 0 &&
         S_ISREG(info.st_mode);
}

bool StartsTimer(uint64_t number) {
  return number == __NR_setitimer || number == __NR_alarm ||
         number == __NR_timer_settime || number == __NR_timerfd_settime;
}

// Signals whose default is not to end the process, and those whose end QEMU
// itself brings about (interpose.cc).
bool EndsProcessAtOnce(int signal) {
  constexpr std::array<int, 16> kOthers = {
      SIGCHLD, SIGURG, SIGWINCH, SIGCONT, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU,
      SIGABRT, SIGFPE, SIGILL,   SIGQUIT, SIGSEGV, SIGTRAP, SIGBUS,  0};
  return std::find(kOthers.begin(), kOthers.end(), signal) == kOthers.end();
}

}  // namespace

void Recording::BeginSyscall(unsigned vcpu, uint64_t number,
                             const std::array<uint64_t, 6>& args) {
  Thread& me = ThreadOf(vcpu);
  if (&me != g_runner.thread) {
    GiveUp("a system call from a thread that does not have the turn");
  }
  CheckSyscallBlock();
  auto call = clew::recorder::BeginSyscall(number, args, memory_);
  if (!call) {
    Refuse(call.error().message);
  }
  RefuseLargeMapping(number, args);
  const auto wait = HoldTimedWait(me, *call);
  NoteReads(*call);
  if (wait) {
    ShowTimeLimit(me, *wait);
  }
  LetBeInterrupted(me, *call);
  CloseBlockBySyscall(me);
  sent_signals_.Enter(number, args);
  me.in_syscall = true;
  me.call = *call;
  if (session_.encoder.tsc) {
    me.call.entered_tsc = TscTicks(g_runner.block_end);
  }
  uses_timers_ = uses_timers_ || StartsTimer(number);
  if (number == __NR_exit_group) {
    EndByExit(static_cast<int32_t>(args[0] & 0xff));
  }
  if (number == __NR_exit) {
    ExitThread(me);
    return;
  }
  if (number == __NR_execve) {
    BeginExec(me);
  }
  EndIfDeadly(me);
  if (!me.limit_is_over && MayBlock(me.call, memory_)) {
    Block(me);
  }
}

// Nobody else runs between this and the SYSCALL instruction.
void Recording::NoteReads(SyscallCall& call) const {
  const SyscallReads reads = ReadsOf(call, memory_);
  if (!ShowsOtherTimeLimit(reads.ranges)) {
    call.read_digest = reads.digest;
  }
}

void Recording::RefuseLargeMapping(uint64_t number,
                                   const std::array<uint64_t, 6>& args) {
  const Status borne = CheckReservation(number, args, AvailableHostBytes);
  if (!borne) {
    Refuse(borne.error().message);
  }
}

void Recording::EndSyscall(unsigned vcpu, int64_t result) {
  Thread& me = ThreadOf(vcpu);
  if (!me.in_syscall) {
    return;
  }
  if (me.gave_turn) {
    AwaitReturn(me, result);
  } else {
    AwaitEnd();
  }
  RestoreTimeLimit(me);
  if (result == kQemuSigreturn) {
    result = static_cast<int64_t>(me.env.gpr(kRax));
  }
  if (me.call.number == __NR_sched_getaffinity) {
    ShowVirtualCores(me, result);
  }
  if (result == 0 && (me.call.number == __NR_clock_gettime ||
                      me.call.number == __NR_gettimeofday)) {
    ShowVirtualTime(me);
  }
  RecordSyscall(me, result);
  me.in_syscall = false;
  AfterSyscall(me, result);
}

void Recording::CheckSyscallBlock() {
  if (g_runner.block == nullptr ||
      g_runner.block->branch_class != x86::BranchClass::kFar) {
    GiveUp("a system call without a SYSCALL instruction");
  }
}

void Recording::CloseBlockBySyscall(Thread& me) {
  g_runner.encoder->AdvanceTime(TscTicks(g_runner.block_end));
  g_runner.encoder->FarTransfer();
  // What SYSCALL does on a CPU and QEMU 7.2 leaves out.
  me.env.set_gpr(kRcx, g_runner.block->next_ip);
  me.env.set_gpr(kR11, me.env.rflags());
  g_runner.block = nullptr;
  me.block = nullptr;
  me.enable_cause = EnableCause::kKernelReturn;
}

// The turn goes on in ForgetThread, when QEMU has cleared the thread's id in
// memory and woken who waits for that.
void Recording::ExitThread(Thread& me) {
  const auto others =
      std::count_if(by_slot_.begin(), by_slot_.end(),
                    [&](const Thread* t) { return t != nullptr && t != &me; });
  if (others == 0) {
    EndByExit(static_cast<int32_t>(me.call.args[0] & 0xff));
  }
  const uint64_t now = g_runner.block_end;
  tracer_->Exit(me.core, me.tid, me.parent, now);
  tracer_->SwitchOut(me.core, me.tid, now, false);
  const Locked lock = turn_lock_.Take();
  clock_ = now;
  scheduler_.Leave(me.slot);
  me.state = Thread::State::kGone;
}

// QEMU will clear the thread's id, after its CPU is gone. It is done here
// already, because the write belongs to the call.
void Recording::RecordExit(Thread& me) {
  const SyscallInput input = InputOf(me.call);
  std::vector<MemoryRange> writes;
  if (memory_.Load<uint32_t>(me.clear_tid_addr).has_value()) {
    *reinterpret_cast<uint32_t*>(me.clear_tid_addr) = 0;
    writes.push_back({me.clear_tid_addr, 4});
  }
  me.inputs->Add(input, writes);
  unreadable_bytes_ += me.inputs->unreadable_bytes();
  if (const Status closed = me.inputs->file().Close(); !closed) {
    GiveUp(closed.error().message);
  }
}

// kill(2) and its like by the program against itself, with a signal that ends
// the process inside the kernel, where nothing could be recorded any more.
void Recording::EndIfDeadly(Thread& me) {
  const uint64_t number = me.call.number;
  const auto& args = me.call.args;
  const auto own = static_cast<uint64_t>(getpid());
  const bool aimed_here = (number == __NR_kill && args[0] == own) ||
                          (number == __NR_tgkill && args[0] == own) ||
                          number == __NR_tkill;
  const uint64_t signal = number == __NR_tgkill ? args[2] : args[1];
  const uint64_t target = number == __NR_kill     ? 0
                          : number == __NR_tgkill ? args[1]
                                                  : args[0];
  const SignalAction* const action = actions_.Find(signal);
  if (aimed_here && action != nullptr && action->is_default() &&
      !Blocks(target, signal) && EndsProcessAtOnce(static_cast<int>(signal))) {
    EndBySignal(static_cast<int32_t>(signal));
  }
}

// True if thread `target_tid`, or every thread where it is 0, blocks `signal`.
bool Recording::Blocks(uint64_t target_tid, uint64_t signal) const {
  return std::all_of(by_slot_.begin(), by_slot_.end(), [&](const Thread* t) {
    const bool meant =
        t != nullptr && (target_tid == 0 ||
                         static_cast<uint64_t>(t->tid.as_int()) == target_tid);
    return !meant || (t->signal_mask >> (signal - 1) & 1) != 0;
  });
}

void Recording::AfterSigmask(Thread& me) {
  const auto set = memory_.Load<uint64_t>(me.call.args[1]);
  if (me.call.args[1] == 0 || !set.has_value()) {
    return;
  }
  switch (me.call.args[0]) {
    case SIG_BLOCK:
      me.signal_mask |= *set;
      return;
    case SIG_UNBLOCK:
      me.signal_mask &= ~*set;
      return;
    default:
      me.signal_mask = *set;
      return;
  }
}

void Recording::RecordSyscall(Thread& me, int64_t result) {
  const auto effects = EffectsOf(me.call, result, memory_);
  if (!effects) {
    Refuse(effects.error().message);
  }
  SyscallInput input = InputOf(me.call);
  input.result = result;
  if (session_.encoder.tsc) {
    input.left_tsc = TscTicks(g_runner.block_end);
  }
  if (effects->has_output) {
    input.output_digest =
        DigestOf(effects->output, memory_, input.output_bytes);
  }
  std::vector<MemoryRange> writes = effects->writes;
  for (const MemoryRange& range : files_.ChangedBy(me.call, result, memory_)) {
    writes.push_back(range);
  }
  files_.Follow(me.call, result);
  me.inputs->Add(input, writes);
}

void Recording::AfterSyscall(Thread& me, int64_t result) {
  if (result >= 0) {
    ReleaseCode(me.call, static_cast<uint64_t>(result));
  }
  switch (me.call.number) {
    case __NR_clone:
      return MakesProcess(me.call) ? void() : AfterClone(me, result);
    case __NR_futex:
      return AfterFutex(me, result);
    case __NR_mmap:
    case __NR_mremap:
      return AfterMmap(me, result);
    case __NR_rt_sigaction:
      return result == 0 ? AfterSigaction(me) : void();
    case __NR_rt_sigprocmask:
      return result == 0 ? AfterSigmask(me) : void();
    case __NR_arch_prctl:
      return CheckFsBase(me, result);
    case __NR_set_tid_address:
      me.clear_tid_addr = me.call.args[0];
      return;
    case __NR_sched_setaffinity:
      PinToOneCpu();
      return;
    case __NR_prctl:
      if (me.call.args[0] == PR_SET_NAME && result == 0) {
        tracer_->Comm(me.core, me.tid, g_runner.block_end, false,
                      memory_.Text(me.call.args[1], 15));
      }
      return;
    default:
      return;
  }
}

void Recording::AfterClone(Thread& me, int64_t result) {
  if (result < 0) {
    newborn_ = nullptr;
    return;
  }
  if (newborn_ == nullptr) {
    GiveUp("clone made a thread that QEMU did not announce");
  }
  Thread& child = *newborn_;
  newborn_ = nullptr;
  child.tid = Tid(static_cast<int32_t>(result));
  child.parent = me.tid;
  child.first_registers = FirstRegisters(me.env, child.tid, me.call.args);
  child.signal_mask = me.signal_mask;
  if ((me.call.args[0] & CLONE_CHILD_CLEARTID) != 0) {
    child.clear_tid_addr = me.call.args[3];
  }
  OpenInputs(child);
  tracer_->Fork(me.core, me.tid, child.tid, g_runner.block_end);
  const Locked lock = turn_lock_.Take();
  MakeReady(lock, child);
}

void Recording::AfterFutex(Thread& me, int64_t result) {
  const FutexCall call = ParseFutex(me.call.args);
  if (result < 0 || call.kind == FutexCall::Kind::kWait) {
    return;
  }
  const auto count = static_cast<uint64_t>(result);
  const Locked lock = turn_lock_.Take();
  ReleaseChanged(lock, call.addr);
  if (call.kind == FutexCall::Kind::kWakeOp) {
    ReleaseChanged(lock, call.addr2);
  }
  if (count == 0) {
    return;
  }
  std::vector<FutexModel::Slot> woken;
  switch (call.kind) {
    case FutexCall::Kind::kWake:
      woken = futexes_.Wake(call.addr, count, call.bitset);
      break;
    case FutexCall::Kind::kRequeue:
      woken = futexes_.Wake(call.addr, std::min<uint64_t>(call.value, count),
                            UINT32_MAX);
      futexes_.Requeue(call.addr, call.addr2, call.value2);
      break;
    case FutexCall::Kind::kWakeOp: {
      woken = futexes_.Wake(call.addr, std::min<uint64_t>(call.value, count),
                            UINT32_MAX);
      const auto more =
          futexes_.Wake(call.addr2, count - woken.size(), UINT32_MAX);
      woken.insert(woken.end(), more.begin(), more.end());
      break;
    }
    default:
      break;
  }
  for (const auto slot : woken) {
    MakeReady(lock, *by_slot_[slot]);
  }
}

void Recording::AfterMmap(Thread& me, int64_t result) {
  const auto& args = me.call.args;
  if (result > 0 && static_cast<uint64_t>(result) >= memory_end_) {
    memory_end_ = UINT64_MAX;
  }
  if (me.call.number != __NR_mmap || result < 0 ||
      (args[3] & MAP_ANONYMOUS) != 0 || (args[2] & PROT_EXEC) == 0) {
    return;
  }
  const std::string path = PathOfDescriptor(static_cast<int>(args[4]));
  if (!IsRegularFile(path)) {
    return;  // its code counts as made by the program
  }
  const ExecMapping mapping{
      .addr = static_cast<uint64_t>(result),
      .size_bytes = (args[1] + kPageBytes - 1) / kPageBytes * kPageBytes,
      .file_offset = args[5],
      .prot = static_cast<uint32_t>(args[2]),
      .path = path};
  tracer_->Mmap(me.core, me.tid, g_runner.block_end, mapping);
  const std::lock_guard lock(code_mutex_);
  MapCode(mapping);
}

void Recording::AfterSigaction(const Thread& me) {
  const uint64_t signal = me.call.args[0];
  const auto action = memory_.Load<SignalAction>(me.call.args[1]);
  if (me.call.args[1] != 0 && action.has_value() &&
      actions_.Set(signal, *action) && action->is_handled()) {
    blocks_.AddHandler(action->handler);
  }
}

// The program sees the virtual cores, not the one CPU that QEMU is pinned to.
void Recording::ShowVirtualCores(const Thread& me, int64_t result) {
  if (result <= 0) {
    return;
  }
  auto* mask = reinterpret_cast<uint8_t*>(me.call.args[2]);
  std::memset(mask, 0, static_cast<size_t>(result));
  for (uint32_t i = 0;
       i < session_.scheduler.cores && i / 8 < static_cast<uint64_t>(result);
       ++i) {
    mask[i / 8] = static_cast<uint8_t>(mask[i / 8] | 1u << i % 8);
  }
}

void Recording::CheckFsBase(Thread& me, int64_t result) {
  if (me.call.args[0] == ARCH_SET_FS && result == 0 &&
      me.env.fs_base() != me.call.args[1]) {
    Refuse(
        fmt::format("this QEMU keeps the FS base elsewhere than version 7.2 "
                    "(found {:#x}, expected {:#x}); install Debian 12's "
                    "qemu-user",
                    me.env.fs_base(), me.call.args[1]));
  }
}

}  // namespace clew::recorder
