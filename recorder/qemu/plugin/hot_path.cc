// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#include "recorder/qemu/plugin/hot_path.h"

#include <algorithm>

#include "recorder/qemu/plugin/plugin_recorder.h"

namespace clew::recorder {
namespace {

// They leave their results in the CPU state; RDTSC and RDTSCP get the virtual
// clock instead of the host's, so that a seed says what they read.
void RecordInput(const InputPoint& point, GuestEnv env) {
  Thread& me = *g_runner.thread;
  const bool reads_time = point.kind == x86::InputInsn::kRdtsc ||
                          point.kind == x86::InputInsn::kRdtscp;
  if (reads_time && g_recorder->virtual_tsc()) {
    const uint64_t now = g_runner.block_start + point.index;
    env.set_gpr(kRax, now & UINT32_MAX);
    env.set_gpr(kRdx, now >> 32);
  }
  me.inputs->Add({.ip = TraceeAddr(point.ip),
                  .rax = env.gpr(kRax),
                  .rbx = env.gpr(kRbx),
                  .rcx = env.gpr(kRcx),
                  .rdx = env.gpr(kRdx)});
}

[[gnu::noinline]] void RecordLastInput(const TranslationBlock& block,
                                       GuestEnv env) {
  RecordInput({.ip = block.last_ip,
               .kind = block.last_input,
               .index = block.insn_count - 1},
              env);
}

// After CloseBlock: what happens at a block's end beside branches.
// True if QEMU left `last` in its midst because it wrote into a page that it is
// in: QEMU goes on with the instruction that wrote, alone in a block.
[[gnu::noinline]] bool LeftEarly(const TranslationBlock& last,
                                 const TranslationBlock& next) {
  return next.insn_count == 1 && next.branch_class == x86::BranchClass::kNone &&
         next.ip != last.target && last.IndexOf(next.ip) < last.insn_count;
}

// Execution goes on from `last` with `next`.
inline void LeaveBlock(const TranslationBlock& last,
                       const TranslationBlock& next, GuestEnv env) {
  if (last.is_generated && LeftEarly(last, next)) [[unlikely]] {
    g_runner.block_end = g_runner.block_start + last.IndexOf(next.ip);
    return;
  }
  CloseBlock(last, next.ip);
  if (last.last_input != x86::InputInsn::kNone) [[unlikely]] {
    RecordLastInput(last, env);
  }
}

[[gnu::noinline]] void OpenTrace(uint64_t ip) {
  Thread& me = *g_runner.thread;
  g_runner.encoder->Enable(TraceeAddr(ip), me.enable_cause);
  me.enable_cause = EnableCause::kKernelReturn;
}

}  // namespace

extern "C" {

[[gnu::used, gnu::visibility("hidden")]] void ClewOnBlock(
    unsigned vcpu, const TranslationBlock* block, uint64_t* env) {
  if (vcpu != g_runner.vcpu) [[unlikely]] {
    if (!g_recorder->EnterThread(vcpu, block->ip, GuestEnv(env))) {
      cpu_loop_exit_noexc(thread_cpu);  // back to QEMU's loop, and here again
    }
  }
  Runner& runner = g_runner;
  const TranslationBlock* last = runner.block;
  if (block->is_handler) [[unlikely]] {
    if (g_recorder->EnterHandler(*block, GuestEnv(env))) {
      last = nullptr;
    }
  }
  uint64_t insns = block->insn_count;
  bool may_stop = true;
  if (last == nullptr) [[unlikely]] {
    if (block->code_version != 0) {
      g_recorder->ShowVersion(*block);
    }
    OpenTrace(block->ip);
  } else if (IsNextIteration(*last, block->ip)) [[unlikely]] {
    --insns;  // counted when it was entered first
    may_stop = false;
  } else {
    LeaveBlock(*last, *block, GuestEnv(env));
    if (block->code_version != 0) [[unlikely]] {
      g_recorder->ShowVersion(*block);
    }
  }
  runner.block = block;
  runner.block_end += insns;
  runner.block_start = runner.block_end - block->insn_count;
  if (block->copies_registers) {
    std::copy_n(env, 16, runner.thread->block_gprs.begin());
  }
  if (runner.block_start >= runner.deadline && may_stop) [[unlikely]] {
    g_recorder->EndTurn(0);
  }
}

[[gnu::used, gnu::visibility("hidden")]] void ClewOnInput(
    unsigned, const InputPoint* point, uint64_t* env) {
  RecordInput(*point, GuestEnv(env));
}

// %rbp is QEMU's state of the CPU while translated code runs.
[[gnu::naked, gnu::visibility("hidden")]] void ClewBlockStub(unsigned, void*) {
  asm("mov %rbp, %rdx\n\tjmp ClewOnBlock");
}
[[gnu::naked, gnu::visibility("hidden")]] void ClewInputStub(unsigned, void*) {
  asm("mov %rbp, %rdx\n\tjmp ClewOnInput");
}

[[gnu::visibility("hidden")]] void ClewOnMemory(unsigned, void* data) {
  const auto index = reinterpret_cast<uintptr_t>(data);
  if (g_runner.block_start + index >= g_runner.deadline) [[unlikely]] {
    g_recorder->EndTurn(index);
  }
}

void ClewOnMxcsr(unsigned, uint32_t, uint64_t addr, void*) {
  g_recorder->NoteMxcsr(addr);
}
void ClewOnX87Status(unsigned, void*) { g_recorder->NoteX87Status(); }

}  // extern "C"

BlockCallbacks HotPathCallbacks() {
  return {.on_block = ClewBlockStub,
          .on_memory = ClewOnMemory,
          .on_input = ClewInputStub,
          .on_mxcsr = ClewOnMxcsr,
          .on_x87_status = ClewOnX87Status};
}

}  // namespace clew::recorder
