// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#include "recorder/qemu/plugin/signal_recorder.h"

#include <asm/unistd_64.h>
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "recorder/qemu/plugin/guest_env.h"
#include "recorder/qemu/plugin/hot_path.h"

namespace clew::recorder {
namespace {

// What the kernel (and QEMU for it) puts on the stack for a handler: the return
// address, which is the restorer, a ucontext, a siginfo, the FPU state.
constexpr uint64_t kContextOffset = 8;
constexpr uint64_t kFrameBytesMax = 4096;
constexpr uint64_t kRedZoneBytes = 128;

bool IsSentByCall(int code) {
  return code == SI_USER || code == SI_TKILL || code == SI_QUEUE;
}

// True if the signal came from the instruction at `ip` inside `block`, which
// then did not finish.
bool FaultedIn(const TranslationBlock& block, uint64_t ip, int signal,
               int code) {
  return IsFaultSignal(signal) && code > 0 &&
         block.IndexOf(ip) < block.insn_count;
}

uint64_t FrameBytes(uint64_t frame, uint64_t interrupted_rsp) {
  // The frame ends below the red zone of the stack that was interrupted, unless
  // the handler has a stack of its own.
  const uint64_t end = interrupted_rsp - kRedZoneBytes;
  const bool same_stack = end > frame && end - frame < kFrameBytesMax;
  const uint64_t least = sizeof(ucontext_t) + sizeof(siginfo_t) + 512;
  return same_stack ? end - frame : least;
}

// Signals whose default is not to end the process, and those whose end QEMU
// itself brings about (interpose.cc).
bool EndsProcessAtOnce(int signal) {
  constexpr std::array<int, 16> kOthers = {
      SIGCHLD, SIGURG, SIGWINCH, SIGCONT, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU,
      SIGABRT, SIGFPE, SIGILL,   SIGQUIT, SIGSEGV, SIGTRAP, SIGBUS,  0};
  return std::find(kOthers.begin(), kOthers.end(), signal) == kOthers.end();
}

// Of kill(2)'s first argument.
bool IsOwnGroup(uint64_t target) {
  const auto process = static_cast<pid_t>(target);
  return process == 0 || process == -getpgrp();
}

bool BlockedBy(const Thread& thread, uint64_t signal) {
  return (thread.signal_mask >> (signal - 1) & 1) != 0;
}

}  // namespace

// Registers at the start of a signal's handler. Where a second signal is
// handled before the first one's handler has run, those of the first are in the
// second's frame.
struct SignalRecorder::Delivery {
  uint64_t ip = 0;
  uint64_t rsp = 0;  // the frame
  uint64_t rdi = 0;  // the signal
  uint64_t rsi = 0;
  uint64_t rdx = 0;
  uint64_t rax = 0;

  ucontext_t& context() const {
    return *GuestPointer<ucontext_t>(rsp + kContextOffset);
  }
  uint64_t interrupted(int greg) const {
    return static_cast<uint64_t>(context().uc_mcontext.gregs[greg]);
  }
  Delivery Interrupted() const {
    return {.ip = interrupted(REG_RIP),
            .rsp = interrupted(REG_RSP),
            .rdi = interrupted(REG_RDI),
            .rsi = interrupted(REG_RSI),
            .rdx = interrupted(REG_RDX),
            .rax = interrupted(REG_RAX)};
  }
};

// False: a function that is called, or a loop that goes back to its start. A
// frame as QEMU makes it is at a multiple of 16, and is moved when the handler
// is entered (Align).
bool SignalRecorder::IsDelivery(const Delivery& entry) const {
  const SignalAction* const action = actions_.Find(entry.rdi);
  return action != nullptr && action->handler == entry.ip &&
         entry.rsp % 16 == 0 &&
         context_.memory.Load<uint64_t>(entry.rsp) == action->restorer &&
         context_.memory.Load<ucontext_t>(entry.rsp + kContextOffset)
             .has_value();
}

// System V ABI, AMD64 supplement, "The Stack Frame": rsp + 8 is a multiple of
// 16 where a function is entered. QEMU 7.2 makes rsp itself one. So all of the
// frame that lies below the FPU state moves down: the context points to that,
// and rt_sigreturn finds the context by rsp.
void SignalRecorder::Align(Delivery& entry) {
  constexpr uint64_t kStep = 8;
  const uint64_t size_bytes = entry.rsi + sizeof(siginfo_t) - entry.rsp;
  const uint64_t to = entry.rsp - kStep;
  if (size_bytes > kFrameBytesMax ||
      (page_get_flags(to) & kQemuPageWrite) == 0) {
    context_.GiveUp(
        fmt::format("no room for a signal handler's frame at {:#x}", to));
  }
  std::memmove(GuestPointer<char>(to), GuestPointer<char>(entry.rsp),
               size_bytes);
  entry.rsp -= kStep;
  entry.rsi -= kStep;
  entry.rdx -= kStep;
}

bool SignalRecorder::EnterHandler(const TranslationBlock& block, GuestEnv env) {
  Delivery entry{.ip = block.ip,
                 .rsp = env.gpr(kRsp),
                 .rdi = env.gpr(kRdi),
                 .rsi = env.gpr(kRsi),
                 .rdx = env.gpr(kRdx),
                 .rax = env.gpr(kRax)};
  if (!IsDelivery(entry)) {
    return false;
  }
  Deliver(entry);
  env.set_gpr(kRsp, entry.rsp);
  env.set_gpr(kRsi, entry.rsi);
  env.set_gpr(kRdx, entry.rdx);
  g_runner.thread->block = nullptr;
  return true;
}

// As far as the books of what was sent allow it. A handler that takes no
// siginfo finds none: QEMU does not write it then.
SentTo SignalRecorder::SentToOf(const Delivery& entry) const {
  const auto info = context_.memory.Load<siginfo_t>(entry.rsi);
  const bool told = actions_.TakesInfo(entry.rdi) && info;
  if (told && !(IsSentByCall(info->si_code) && info->si_pid == getpid())) {
    return SentTo::kUnknown;
  }
  const Tid thread = g_runner.thread->tid;
  const auto signal = static_cast<int32_t>(entry.rdi);
  for (const SentTo sent_to : {SentTo::kThread, SentTo::kProcess}) {
    if (sent_.MayHandle(thread, {.number = signal, .sent_to = sent_to})) {
      return sent_to;
    }
  }
  return SentTo::kUnknown;
}

void SignalRecorder::Deliver(Delivery& entry) {
  Align(entry);
  Delivery earlier = entry.Interrupted();
  if (IsDelivery(earlier)) {
    Deliver(earlier);
    auto& gregs = entry.context().uc_mcontext.gregs;
    gregs[REG_RSP] = static_cast<greg_t>(earlier.rsp);
    gregs[REG_RSI] = static_cast<greg_t>(earlier.rsi);
    gregs[REG_RDX] = static_cast<greg_t>(earlier.rdx);
  } else {
    CloseBlockByDelivery(entry);
  }
  SignalInput input;
  input.number = static_cast<int32_t>(entry.rdi);
  input.interrupted_ip = TraceeAddr(entry.interrupted(REG_RIP));
  input.handler_ip = TraceeAddr(entry.ip);
  input.rsp = entry.rsp;
  input.rdi = entry.rdi;
  input.rsi = entry.rsi;
  input.rdx = entry.rdx;
  input.rax = entry.rax;
  input.sent_to = SentToOf(entry);
  sent_.Handle(g_runner.thread->tid,
               {.number = input.number, .sent_to = input.sent_to});
  g_runner.thread->inputs->Add(
      input, {{entry.rsp, FrameBytes(entry.rsp, entry.interrupted(REG_RSP))}});
}

// siginfo_t::si_code: above 0 if the signal comes from the kernel. QEMU, as the
// kernel, leaves the frame's siginfo as it finds the stack if the handler does
// not ask for it; a signal that reports a fault is then taken for one.
int SignalRecorder::CodeOf(const Delivery& entry) const {
  if (!actions_.TakesInfo(entry.rdi)) {
    return 1;
  }
  const auto info = context_.memory.Load<siginfo_t>(entry.rsi);
  return info.has_value() ? info->si_code : 0;
}

void SignalRecorder::CloseBlockByDelivery(const Delivery& entry) {
  const TranslationBlock* last = g_runner.block;
  if (last == nullptr) {
    return;  // right after a system call: the trace is off
  }
  const uint64_t ip = entry.interrupted(REG_RIP);
  LeaveBlockBySignal(
      *last, ip,
      FaultedIn(*last, ip, static_cast<int>(entry.rdi), CodeOf(entry)) ||
          IsNextIteration(*last, ip));
}

std::optional<int32_t> SignalRecorder::DeadlySignal(
    const SyscallCall& call) const {
  const uint64_t number = call.number;
  const auto& args = call.args;
  const auto own = static_cast<uint64_t>(getpid());
  const bool aimed_here =
      (number == __NR_kill && (args[0] == own || IsOwnGroup(args[0]))) ||
      (number == __NR_tgkill && args[0] == own) || number == __NR_tkill;
  const uint64_t signal = number == __NR_tgkill ? args[2] : args[1];
  const uint64_t target = number == __NR_kill     ? 0
                          : number == __NR_tgkill ? args[1]
                                                  : args[0];
  const SignalAction* const action = actions_.Find(signal);
  const bool ends = aimed_here && action != nullptr && action->is_default() &&
                    !Blocks(target, signal) &&
                    EndsProcessAtOnce(static_cast<int>(signal));
  return ends ? std::optional(static_cast<int32_t>(signal)) : std::nullopt;
}

// True if thread `target_tid`, or every thread where it is 0, blocks `signal`.
bool SignalRecorder::Blocks(uint64_t target_tid, uint64_t signal) const {
  return std::ranges::all_of(threads_.all(), [&](const Thread* t) {
    const bool meant =
        target_tid == 0 || static_cast<uint64_t>(t->tid.as_int()) == target_tid;
    return !meant || BlockedBy(*t, signal);
  });
}

bool SignalRecorder::Interrupts(const Thread& thread, uint64_t signal) const {
  const SignalAction* const action = actions_.Find(signal);
  return action != nullptr && action->is_handled() &&
         !BlockedBy(thread, signal);
}

std::optional<uint64_t> SignalRecorder::ActionChanged(const SyscallCall& call) {
  const auto action = context_.memory.Load<SignalAction>(call.args[1]);
  const bool handled = call.args[1] != 0 && action.has_value() &&
                       actions_.Set(call.args[0], *action) &&
                       action->is_handled();
  return handled ? std::optional(action->handler) : std::nullopt;
}

void SignalRecorder::MaskChanged(Thread& me) const {
  const auto set = context_.memory.Load<uint64_t>(me.call.args[1]);
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

}  // namespace clew::recorder
