// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#include "recorder/qemu/plugin/ending.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <span>

#include "common/linux/deviations.h"
#include "recorder/qemu/plugin/hot_path.h"
#include "recorder/qemu/plugin/outcome_file.h"
#include "recorder/qemu/plugin/signal_actions.h"

namespace clew::recorder {
namespace {

constexpr int kTimedOutExitStatus = 124;  // as timeout(1)

// Whom `call`, by which the process ends, sends its signal: others of its
// group, too.
pid_t TargetOf(const SyscallCall& call) {
  return call.number == SYS_kill ? static_cast<pid_t>(call.args[0]) : getpid();
}

[[noreturn]] void DieBySignal(int signal, pid_t target) {
  struct sigaction action = {};
  action.sa_handler = SIG_DFL;
  sigaction(signal, &action, nullptr);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  if (target != getpid()) {
    syscall(SYS_kill, target, signal);
  }
  syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), signal);
  sigprocmask(SIG_UNBLOCK, &set, nullptr);
  ExitProcess(128 + signal);
}

// False for threads that are in the midst of a block, whose registers are those
// at its start.
bool HasExactRegisters(const Thread* thread) {
  return thread->block == nullptr || thread->stop_index == 0 ||
         thread->held.has_value();
}

DumpedThread DumpedRegisters(const Thread& thread) {
  if (thread.env.words() == nullptr) {
    return thread.first_registers;
  }
  DumpedThread registers = thread.env.Registers(thread.tid);
  if (thread.held.has_value()) {
    registers.rip = thread.block->IpOf(thread.stop_index);
  } else if (thread.block != nullptr) {
    registers.rip = thread.block->ip;
    if (thread.stop_index > 0) {
      registers.gpr = thread.block_gprs;
    }
  }
  return registers;
}

// Whether the last fault was that the instruction at rip cannot be fetched,
// which is then in no block.
bool IsFetchOf(const GuestEnv& env) {
  constexpr uint64_t kInsnBytesMax = 15;
  return env.fault_addr() - env.rip() < kInsnBytesMax;
}

// The si_code with which the kernel raises the signal of a fault.
int32_t CodeOfFault(const Failure& failure,
                    std::span<const GuestRegion> regions) {
  const uint64_t addr = failure.addr.as_int();
  switch (failure.signal) {
    case SIGSEGV:
      return std::ranges::any_of(regions,
                                 [&](const GuestRegion& region) {
                                   return addr - region.addr <
                                          region.size_bytes;
                                 })
                 ? SEGV_ACCERR
                 : SEGV_MAPERR;
    case SIGBUS:
      return BUS_ADRERR;
    case SIGFPE:
      return FPE_INTDIV;
    case SIGILL:
      return ILL_ILLOPN;
    default:
      return SI_KERNEL;
  }
}

}  // namespace

void Ending::EndByExit(int32_t status) {
  Locked lock = parts_.turns.Lock();
  const Thread& me = *g_runner.thread;
  parts_.time.set_turn_end(g_runner.block_end);
  Failure failure;
  failure.kind = parts_.context.config.fail_on.Matches(status, false)
                     ? FailureKind::kExit
                     : FailureKind::kNone;
  failure.exit_status = status;
  failure.thread = me.tid;
  failure.ip = TraceeAddr(me.env.rip());
  Finish(std::move(lock), failure);
}

void Ending::EndBySignal(int32_t signal) {
  Locked lock = parts_.turns.Lock();
  Thread& me = *g_runner.thread;
  const bool faulted = CloseBlockBySignal(me, signal) ||
                       (signal == SIGSEGV && IsFetchOf(me.env));
  parts_.time.set_turn_end(g_runner.block_end);
  Failure failure;
  failure.kind = FailureKind::kSignal;
  failure.signal = signal;
  failure.thread = me.tid;
  failure.ip = TraceeAddr(me.env.rip());
  if (faulted && (signal == SIGSEGV || signal == SIGBUS)) {
    failure.addr = TraceeAddr(me.env.fault_addr());
  }
  Finish(std::move(lock), failure, faulted);
}

// QEMU has restored rip to the instruction that faulted, or that comes next.
bool Ending::CloseBlockBySignal(Thread& me, int32_t signal) {
  const TranslationBlock* last = g_runner.block;
  me.block = nullptr;
  if (last == nullptr) {
    return false;  // right after a system call: the trace is off
  }
  const uint64_t ip = me.env.rip();
  const bool faulted =
      IsFaultSignal(signal) && last->IndexOf(ip) < last->insn_count;
  LeaveBlockBySignal(*last, ip, faulted || IsNextIteration(*last, ip));
  g_runner.block = nullptr;
  return faulted;
}

void Ending::EndAs(Locked lock, FailureKind kind, uint64_t now) {
  parts_.time.set_turn_end(now);
  Failure failure;
  failure.kind = kind;
  Finish(std::move(lock), failure);
}

void Ending::Finish(Locked /*lock*/, const Failure& failure, bool faulted) {
  Context& context = parts_.context;
  Outcome outcome = Describe(failure);
  context.tracer->Turn(Tid(0), parts_.time.turn_end());
  Status status;
  if (failure.kind != FailureKind::kNone || context.config.core_on_exit) {
    status = WriteCoreFile(failure, faulted);
    outcome.has_core = status.has_value();
  }
  if (const Status closed = CloseFiles(); !closed && status) {
    status = closed;
  }
  if (context.limit->dropped()) {
    outcome.dropped = context.limit->why();
  }
  outcome.inputs_unknown = parts_.inputs.lacks_bytes() ? 1 : 0;
  if (!status) {
    outcome.refusal = status.error().message;
  } else if (context.config.strict && !outcome.deviations.empty()) {
    outcome.refusal = StrictRefusal(outcome.deviations.front());
  }
  context.outcome.Write(outcome);
  Leave(failure);
}

// What is known of it before the files are closed.
Outcome Ending::Describe(const Failure& failure) const {
  Outcome outcome;
  outcome.failure = failure;
  outcome.insns = ProgramTime::InsnsUntil(parts_.time.turn_end());
  outcome.handovers = parts_.turns.handovers();
  outcome.switches = parts_.context.tracer->switches();
  outcome.registers_exact =
      std::ranges::all_of(parts_.threads.all(), HasExactRegisters);
  outcome.unlogged_inputs = parts_.files.Unlogged();
  outcome.deviations = parts_.deviations.phrases();
  return outcome;
}

Status Ending::CloseFiles() {
  Context& context = parts_.context;
  Status status = CloseThreads();
  if (status && context.limit->dropped()) {
    status = NameWhatIsThere();
  }
  for (const Status& closed : {context.tracer->Close(), parts_.code.Close()}) {
    status = status ? closed : status;
  }
  return status;
}

// In the place of dropped events: without threads and mappings the core dump
// cannot be read.
Status Ending::NameWhatIsThere() {
  Tracer& tracer = *parts_.context.tracer;
  CLEW_RETURN_IF_ERROR(tracer.BeginAnew());
  CLEW_ASSIGN_OR_RETURN(regions, parts_.start.Regions());
  const Tid main(getpid());
  const uint64_t now = parts_.time.turn_end();
  parts_.start.NameMappings(main, regions, now);
  for (const Thread* thread : parts_.threads.all()) {
    if (thread->inputs && thread->tid != main) {
      tracer.Fork(0, main, thread->tid, now);
    }
  }
  return {};
}

Status Ending::CloseThreads() {
  Status status;
  for (Thread* thread : parts_.threads.all()) {
    const Status closed = CloseThread(*thread);
    status = status ? closed : status;
  }
  return status;
}

Status Ending::CloseThread(Thread& thread) {
  if (!thread.inputs) {
    return {};  // it never ran
  }
  if (thread.in_syscall) {
    thread.inputs->Add(InputOf(thread.call), {});
  }
  if (thread.state == Thread::State::kOnCore) {
    Tracer& tracer = *parts_.context.tracer;
    const uint64_t now = parts_.time.turn_end();
    CoreEncoder& encoder = tracer.encoder(thread.core);
    const bool running = encoder.enabled() && thread.block != nullptr;
    if (running) {
      encoder.AdvanceTime(TscTicks(now));
      encoder.Interrupt(TraceeAddr(thread.block->IpOf(thread.stop_index)));
    }
    tracer.SwitchOut(thread.core, thread.tid, now, running);
  }
  return parts_.inputs.Close(thread);
}

Status Ending::WriteCoreFile(const Failure& failure, bool faulted) {
  const Context& context = parts_.context;
  DumpedProcess dump = parts_.start.Describe();
  dump.signal = failure.signal;
  dump.fault_addr = failure.addr.as_int();
  for (const Thread* thread : parts_.threads.all()) {
    if (thread->state == Thread::State::kNew ||
        thread->state == Thread::State::kGone) {
      continue;  // ended, or still in the call that makes it
    }
    const bool first = thread->tid == failure.thread;
    dump.threads.insert(first ? dump.threads.begin() : dump.threads.end(),
                        DumpedRegisters(*thread));
  }
  CLEW_ASSIGN_OR_RETURN(regions, parts_.start.Regions());
  dump.code = faulted ? CodeOfFault(failure, regions) : 0;
  return WriteCore(CorePath(context.config.folder), dump, regions,
                   context.memory);
}

void Ending::Leave(const Failure& failure) {
  switch (failure.kind) {
    case FailureKind::kSignal:
      DieBySignal(failure.signal, g_runner.thread->in_syscall
                                      ? TargetOf(g_runner.thread->call)
                                      : getpid());
    case FailureKind::kHang:
    case FailureKind::kTimeLimit:
      ExitProcess(kTimedOutExitStatus);
    case FailureKind::kNone:
    case FailureKind::kExit:
      break;
  }
  ExitProcess(failure.exit_status);
}

}  // namespace clew::recorder
