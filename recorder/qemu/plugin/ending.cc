// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "recorder/qemu/plugin/hot_path.h"
#include "recorder/qemu/plugin/recording.h"

// How a recording ends: everything is written out, then the process ends as the
// program did.

namespace clew::recorder {
namespace {

constexpr int kTimedOutExitStatus = 124;  // as timeout(1)
constexpr int kRefusedExitStatus = 125;   // the recorder stopped the program

[[noreturn]] void ExitProcess(int status) {
  syscall(SYS_exit_group, status);
  __builtin_unreachable();
}

[[noreturn]] void DieBySignal(int signal) {
  struct sigaction action = {};
  action.sa_handler = SIG_DFL;
  sigaction(signal, &action, nullptr);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), signal);
  sigprocmask(SIG_UNBLOCK, &set, nullptr);
  ExitProcess(128 + signal);
}

}  // namespace

void Recording::EndByExit(int32_t status) {
  Locked lock = turn_lock_.Take();
  Thread& me = *g_runner.thread;
  clock_ = g_runner.block_end;
  Failure failure;
  failure.kind = session_.fail_on.Matches(status) ? FailureKind::kExit
                                                  : FailureKind::kNone;
  failure.exit_status = status;
  failure.thread = me.tid;
  failure.ip = TraceeAddr(me.env.rip());
  Finish(std::move(lock), failure);
}

void Recording::EndBySignal(int32_t signal) {
  Locked lock = turn_lock_.Take();
  Thread& me = *g_runner.thread;
  CloseBlockBySignal(me, signal);
  clock_ = g_runner.block_end;
  Failure failure;
  failure.kind = FailureKind::kSignal;
  failure.signal = signal;
  failure.thread = me.tid;
  failure.ip = TraceeAddr(me.env.rip());
  if (signal == SIGSEGV || signal == SIGBUS) {
    failure.addr = TraceeAddr(me.env.fault_addr());
  }
  Finish(std::move(lock), failure);
}

// QEMU has restored rip to the instruction that faulted, or that comes next.
void Recording::CloseBlockBySignal(Thread& me, int32_t signal) {
  const clew::recorder::Block* last = g_runner.block;
  me.block = nullptr;
  if (last == nullptr) {
    return;  // right after a system call: the trace is off
  }
  const uint64_t ip = me.env.rip();
  const uint32_t index = last->IndexOf(ip);
  const bool faulted = IsFaultSignal(signal) && index < last->insn_count;
  if (faulted || IsNextIteration(*last, ip)) {
    g_runner.block_end = g_runner.block_start + index;
  } else {
    CloseBlock(*last, ip);
  }
  g_runner.encoder->AdvanceTime(TscTicks(g_runner.block_end));
  g_runner.encoder->Interrupt(TraceeAddr(ip));
  g_runner.block = nullptr;
}

void Recording::EndByTimeLimit(uint64_t now) {
  Locked lock = turn_lock_.Take();
  clock_ = now;
  FinishAs(std::move(lock), FailureKind::kTimeLimit);
}

void Recording::Refuse(const std::string& why) { GiveUp(why); }

void Recording::GiveUp(const std::string& why) {
  Outcome outcome;
  outcome.refusal = why;
  WriteOutcome(outcome);
  ExitProcess(kRefusedExitStatus);
}

// No thread is to blame.
void Recording::FinishAs(Locked lock, FailureKind kind) {
  Failure failure;
  failure.kind = kind;
  Finish(std::move(lock), failure);
}

void Recording::Finish(Locked /*lock*/, const Failure& failure) {
  Outcome outcome;
  outcome.failure = failure;
  outcome.insns = clock_ - kFirstTick;
  outcome.handovers = handovers_;
  outcome.switches = tracer_->switches();
  tracer_->Turn(Tid(0), clock_);
  Status status;
  if (failure.kind != FailureKind::kNone || session_.core_on_exit) {
    status = WriteCoreFile(failure);
    outcome.has_core = status.has_value();
  }
  outcome.registers_exact =
      std::none_of(by_slot_.begin(), by_slot_.end(), [](const Thread* t) {
        return t != nullptr && t->block != nullptr && t->stop_index > 0 &&
               !t->held.has_value();
      });
  if (const Status closed = CloseFiles(); !closed && status) {
    status = closed;
  }
  if (limit_->dropped()) {
    outcome.dropped = limit_->why();
  }
  outcome.inputs_unknown = unreadable_bytes_ > 0 ? 1 : 0;
  outcome.unlogged_inputs = files_.Unlogged();
  if (!status) {
    outcome.refusal = status.error().message;
  }
  WriteOutcome(outcome);
  Leave(failure);
}

Status Recording::CloseFiles() {
  Status status = CloseThreads(clock_);
  if (status && limit_->dropped()) {
    status = NameWhatIsThere();
  }
  for (const Status& closed :
       {tracer_->Close(), blocks_.CloseCodeList(), raw_code_.Close()}) {
    status = status ? closed : status;
  }
  return status;
}

// In the place of dropped events: without threads and mappings nobody reads the
// core dump.
Status Recording::NameWhatIsThere() {
  CLEW_RETURN_IF_ERROR(tracer_->BeginAnew());
  CLEW_ASSIGN_OR_RETURN(regions, ListRegions(QemuPageProtection(), stack_addr_,
                                             brk_, memory_end_));
  const Tid main(getpid());
  tracer_->Comm(0, main, clock_, true, program_);
  for (const ExecMapping& mapping : CodeOfFiles(regions)) {
    tracer_->Mmap(0, main, clock_, mapping);
  }
  for (const Thread* thread : by_slot_) {
    if (thread != nullptr && thread->inputs && thread->tid != main) {
      tracer_->Fork(0, main, thread->tid, clock_);
    }
  }
  return {};
}

Status Recording::CloseThreads(uint64_t now) {
  Status status;
  for (Thread* thread : by_slot_) {
    if (thread != nullptr) {
      const Status closed = CloseThread(*thread, now);
      status = status ? closed : status;
    }
  }
  return status;
}

Status Recording::CloseThread(Thread& thread, uint64_t now) {
  if (!thread.inputs) {
    return {};  // it never ran
  }
  if (thread.in_syscall) {
    thread.inputs->Add(InputOf(thread.call), {});
  }
  if (thread.state == Thread::State::kOnCore) {
    CoreEncoder& encoder = tracer_->encoder(thread.core);
    const bool running = encoder.enabled() && thread.block != nullptr;
    if (running) {
      encoder.AdvanceTime(TscTicks(now));
      encoder.Interrupt(TraceeAddr(thread.block->IpOf(thread.stop_index)));
    }
    tracer_->SwitchOut(thread.core, thread.tid, now, running);
  }
  unreadable_bytes_ += thread.inputs->unreadable_bytes();
  return thread.inputs->file().Close();
}

DumpedThread Recording::DumpedRegisters(const Thread& thread) const {
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

Status Recording::WriteCoreFile(const Failure& failure) {
  DumpedProcess dump;
  dump.process = getpid();
  dump.signal = failure.signal;
  dump.fault_addr = failure.addr.as_int();
  dump.program = program_;
  dump.arguments = arguments_;
  dump.auxv = auxv_;
  for (const Thread* thread : by_slot_) {
    if (thread == nullptr || thread->state == Thread::State::kNew ||
        thread->state == Thread::State::kGone) {
      continue;  // ended, or still in the call that makes it
    }
    const DumpedThread registers = DumpedRegisters(*thread);
    const bool first = thread->tid == failure.thread;
    dump.threads.insert(first ? dump.threads.begin() : dump.threads.end(),
                        registers);
  }
  CLEW_ASSIGN_OR_RETURN(regions, ListRegions(QemuPageProtection(), stack_addr_,
                                             brk_, memory_end_));
  return WriteCore(CorePath(session_.folder), dump, regions, memory_);
}

// Into a file that is open since the start: the program may have given up the
// right to make one.
void Recording::WriteOutcome(const Outcome& outcome) {
  outcome_.Append(FormatOutcome(outcome));
  if (const Status closed = outcome_.Close(); !closed) {
    fprintf(stderr, "clew-qemu-plugin: %s\n", closed.error().message.c_str());
  }
}

void Recording::Leave(const Failure& failure) {
  switch (failure.kind) {
    case FailureKind::kSignal:
      DieBySignal(failure.signal);
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
