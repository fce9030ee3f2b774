// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "recorder/qemu/plugin/hot_path.h"
#include "recorder/qemu/plugin/recording.h"

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
bool FaultedIn(const Block& block, uint64_t ip, int signal, int code) {
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

// Memory of the guest is our own, at its own addresses.
template <class T>
T* At(uint64_t addr) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  return reinterpret_cast<T*>(addr);
}

}  // namespace

// Registers at the start of a signal's handler. Where a second signal is
// handled before the first one's handler has run, those of the first are in the
// second's frame.
struct Recording::Delivery {
  uint64_t ip = 0;
  uint64_t rsp = 0;  // the frame
  uint64_t rdi = 0;  // the signal
  uint64_t rsi = 0;
  uint64_t rdx = 0;
  uint64_t rax = 0;

  ucontext_t& context() const { return *At<ucontext_t>(rsp + kContextOffset); }
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
bool Recording::IsDelivery(const Delivery& entry) const {
  const SignalAction* const action = actions_.Find(entry.rdi);
  return action != nullptr && action->handler == entry.ip &&
         entry.rsp % 16 == 0 &&
         memory_.Load<uint64_t>(entry.rsp) == action->restorer &&
         memory_.Load<ucontext_t>(entry.rsp + kContextOffset).has_value();
}

// System V ABI, AMD64 supplement, "The Stack Frame": rsp + 8 is a multiple of
// 16 where a function is entered. QEMU 7.2 makes rsp itself one. So all of the
// frame that lies below the FPU state moves down: the context points to that,
// and rt_sigreturn finds the context by rsp.
void Recording::Align(Delivery& entry) {
  constexpr uint64_t kStep = 8;
  const uint64_t size_bytes = entry.rsi + sizeof(siginfo_t) - entry.rsp;
  const uint64_t to = entry.rsp - kStep;
  if (size_bytes > kFrameBytesMax ||
      (page_get_flags(to) & kQemuPageWrite) == 0) {
    Refuse(fmt::format("no room for a signal handler's frame at {:#x}", to));
  }
  std::memmove(At<char>(to), At<char>(entry.rsp), size_bytes);
  entry.rsp -= kStep;
  entry.rsi -= kStep;
  entry.rdx -= kStep;
}

bool Recording::EnterHandler(const clew::recorder::Block& block, GuestEnv env) {
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
SentTo Recording::SentToOf(const Delivery& entry) const {
  const auto info = memory_.Load<siginfo_t>(entry.rsi);
  const bool told = actions_.TakesInfo(entry.rdi) && info;
  if (told && !(IsSentByCall(info->si_code) && info->si_pid == getpid())) {
    return SentTo::kUnknown;
  }
  const Tid thread = g_runner.thread->tid;
  const auto signal = static_cast<int32_t>(entry.rdi);
  for (const SentTo sent_to : {SentTo::kThread, SentTo::kProcess}) {
    if (sent_signals_.MayHandle(thread, signal, sent_to)) {
      return sent_to;
    }
  }
  return SentTo::kUnknown;
}

void Recording::Deliver(Delivery& entry) {
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
  sent_signals_.Handle(g_runner.thread->tid, input.number, input.sent_to);
  g_runner.thread->inputs->Add(
      input, {{entry.rsp, FrameBytes(entry.rsp, entry.interrupted(REG_RSP))}});
}

// siginfo_t::si_code: above 0 if the signal comes from the kernel. QEMU, as the
// kernel, leaves the frame's siginfo as it finds the stack if the handler does
// not ask for it; a signal that tells of a fault is then taken for one.
int Recording::CodeOf(const Delivery& entry) const {
  if (!actions_.TakesInfo(entry.rdi)) {
    return 1;
  }
  const auto info = memory_.Load<siginfo_t>(entry.rsi);
  return info.has_value() ? info->si_code : 0;
}

void Recording::CloseBlockByDelivery(const Delivery& entry) {
  const clew::recorder::Block* last = g_runner.block;
  if (last == nullptr) {
    return;  // right after a system call: the trace is off
  }
  const uint64_t ip = entry.interrupted(REG_RIP);
  if (FaultedIn(*last, ip, static_cast<int>(entry.rdi), CodeOf(entry)) ||
      IsNextIteration(*last, ip)) {
    g_runner.block_end = g_runner.block_start + last->IndexOf(ip);
  } else {
    CloseBlock(*last, ip);
  }
  g_runner.encoder->AdvanceTime(TscTicks(g_runner.block_end));
  g_runner.encoder->Interrupt(TraceeAddr(ip));
}

}  // namespace clew::recorder
