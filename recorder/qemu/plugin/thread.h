// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#ifndef CLEW_RECORDER_QEMU_PLUGIN_THREAD_H_
#define CLEW_RECORDER_QEMU_PLUGIN_THREAD_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "common/units.h"
#include "recorder/pt_encoder/core_encoder.h"
#include "recorder/qemu/calls/syscall_effects.h"
#include "recorder/qemu/calls/timed_wait.h"
#include "recorder/qemu/input_writer.h"
#include "recorder/qemu/plugin/guest_env.h"
#include "recorder/qemu/plugin/translation_block.h"
#include "recorder/qemu/scheduler.h"

namespace clew::recorder {

// A thread of the program. Its fields belong to whoever has the turn, except
// `turn` and `arrived`.
struct Thread {
  enum class State : uint8_t {
    kNew,      // being made
    kWaiting,  // able to run, on no core
    kOnCore,   // has a core; runs when the core has its turn
    kBlocked,  // in a system call that may wait
    kGone,
  };

  Scheduler::Slot slot = 0;
  unsigned vcpu = 0;
  Tid tid;
  Tid parent;
  State state = State::kNew;
  uint32_t core = 0;
  CPUState* cpu = nullptr;
  GuestEnv env;
  std::unique_ptr<InputWriter> inputs;

  // The block that it is in, nullptr between a system call and the next block;
  // and where in it, while others have the turn.
  const TranslationBlock* block = nullptr;
  uint64_t stop_index = 0;
  // The registers at the start of `block`.
  std::array<uint64_t, 16> block_gprs = {};
  // Those with which it was made; its own are in `env` once it has run.
  DumpedThread first_registers;
  // How its core's trace goes on at its next block.
  EnableCause enable_cause = EnableCause::kSwitchIn;

  // Held before its SYSCALL (timed_waits.h).
  std::optional<TimedWait> held;
  // What the call's time limit was, while the kernel is shown another.
  std::optional<timespec> time_limit;
  uint64_t time_limit_addr = 0;
  // When the host's kernel ends its call's wait, by the virtual clock.
  std::optional<uint64_t> host_limit_ns;
  SyscallCall call;
  uint64_t clear_tid_addr = 0;
  uint64_t robust_list = 0;  // as set_robust_list(2) was given; 0: never
  uint64_t signal_mask = 0;  // signals it blocks; bit 0 is signal 1
  // The virtual cores that it says it is to run on; bit 0 is core 0.
  uint64_t affinity = UINT64_MAX;

  bool in_syscall = false;
  bool gave_turn = false;      // at the start of the system call
  bool waits_forever = false;  // blocked, and only another thread can end that
  // The kernel is shown a time limit that is over: the call does not wait.
  bool limit_is_over = false;
  // A signal is about to be sent to it, so that it is to wait in the kernel.
  bool interrupted = false;

  // 1: the turn is this thread's. A futex.
  std::atomic<uint32_t> turn = 0;
  // Its blocking system call has returned.
  std::atomic<bool> arrived = false;
};

// What the callbacks from translated code touch, for the thread whose turn it
// is. Times are of the virtual clock: instructions retired by all cores.
struct Runner {
  static constexpr unsigned kNobody = ~0u;
  unsigned vcpu = kNobody;
  Thread* thread = nullptr;
  const TranslationBlock* block =
      nullptr;  // entered last; its end is still open
  CoreEncoder* encoder = nullptr;
  uint64_t block_start = 0;  // when `block` was entered
  uint64_t block_end = 0;    // when its last instruction retires
  uint64_t deadline = 0;     // when the turn ends
};
extern Runner g_runner;

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_PLUGIN_THREAD_H_
