// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#include <signal.h>
#include <ucontext.h>

#include <algorithm>
#include <array>

#include "recorder/qemu/plugin/hot_path.h"
#include "recorder/qemu/plugin/recording.h"

namespace clew::recorder {
namespace {

// What the kernel (and QEMU for it) puts on the stack for a handler: the return
// address, which is the restorer, a ucontext, a siginfo, the FPU state.
constexpr uint64_t kContextOffset = 8;
constexpr uint64_t kFrameBytesMax = 4096;
constexpr uint64_t kRedZoneBytes = 128;

bool IsFaultSignal(int signal) {
  return signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE ||
         signal == SIGILL || signal == SIGTRAP;
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

}  // namespace

bool Recording::EnterHandler(const clew::recorder::Block& block, GuestEnv env) {
  const uint64_t frame = env.gpr(kRsp);
  const auto signal = static_cast<uint32_t>(env.gpr(kRdi));
  const auto context = memory_.Load<ucontext_t>(frame + kContextOffset);
  const auto info = memory_.Load<siginfo_t>(env.gpr(kRsi));
  if (signal == 0 || signal >= actions_.size() ||
      actions_[signal].handler != block.ip || !context.has_value() ||
      memory_.Load<uint64_t>(frame) != actions_[signal].restorer) {
    return false;  // called as a function
  }
  Thread& me = *g_runner.thread;
  const auto& gregs = context->uc_mcontext.gregs;
  const auto ip = static_cast<uint64_t>(gregs[REG_RIP]);
  const clew::recorder::Block* last = g_runner.block;
  if (last != nullptr) {
    const int code = info.has_value() ? info->si_code : 0;
    if (FaultedIn(*last, ip, static_cast<int>(signal), code) ||
        IsNextIteration(*last, ip)) {
      g_runner.block_end = g_runner.block_start + last->IndexOf(ip);
    } else {
      CloseBlock(*last, ip);
    }
    g_runner.encoder->AdvanceTime(TscTicks(g_runner.block_end));
    g_runner.encoder->Interrupt(TraceeAddr(ip));
  }
  me.block = nullptr;
  SignalInput input;
  input.number = static_cast<int32_t>(signal);
  input.interrupted_ip = TraceeAddr(ip);
  input.handler_ip = TraceeAddr(block.ip);
  input.rsp = frame;
  input.rdi = env.gpr(kRdi);
  input.rsi = env.gpr(kRsi);
  input.rdx = env.gpr(kRdx);
  input.rax = env.gpr(kRax);
  const auto interrupted_rsp = static_cast<uint64_t>(gregs[REG_RSP]);
  me.inputs->Add(input, {{frame, FrameBytes(frame, interrupted_rsp)}});
  return true;
}

}  // namespace clew::recorder
