// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#ifndef CLEW_RECORDER_QEMU_PLUGIN_SIGNAL_RECORDER_H_
#define CLEW_RECORDER_QEMU_PLUGIN_SIGNAL_RECORDER_H_

#include <unistd.h>

#include <array>
#include <cstdint>
#include <optional>

#include "common/sent_signals.h"
#include "recorder/qemu/calls/syscall_effects.h"
#include "recorder/qemu/plugin/context.h"
#include "recorder/qemu/plugin/guest_env.h"
#include "recorder/qemu/plugin/signal_actions.h"
#include "recorder/qemu/plugin/thread.h"
#include "recorder/qemu/plugin/translation_block.h"
#include "recorder/qemu/plugin/turns/thread_table.h"

namespace clew::recorder {

// Which signals the program handles and blocks, which it was sent, and the
// entries of its handlers. All methods are called by the thread that has the
// turn.
class SignalRecorder {
 public:
  // References outlive this.
  SignalRecorder(Context& context, const ThreadTable& threads)
      : context_(context), threads_(threads) {}

  // `block` is a signal handler's start. Records the delivery and returns true
  // if a signal was delivered, and not the function called.
  bool EnterHandler(const TranslationBlock& block, GuestEnv env);

  // A system call is entered, which may send a signal.
  void EnterSyscall(uint64_t number, const std::array<uint64_t, 6>& args) {
    sent_.Enter(number, args);
  }
  // The signal with which `call` ends the process: kill(2) and its like by the
  // program against itself, with a signal that ends it inside the kernel, where
  // nothing could be recorded any more.
  std::optional<int32_t> DeadlySignal(const SyscallCall& call) const;
  // Whether `thread` runs a handler when it is sent `signal`.
  bool Interrupts(const Thread& thread, uint64_t signal) const;

  // After rt_sigaction(2) and rt_sigprocmask(2). What the former returns is the
  // address of a new handler.
  std::optional<uint64_t> ActionChanged(const SyscallCall& call);
  void MaskChanged(Thread& me) const;

 private:
  struct Delivery;
  bool IsDelivery(const Delivery& entry) const;
  void Align(Delivery& entry);
  SentTo SentToOf(const Delivery& entry) const;
  void Deliver(Delivery& entry);
  int CodeOf(const Delivery& entry) const;
  void CloseBlockByDelivery(const Delivery& entry);
  bool Blocks(uint64_t target_tid, uint64_t signal) const;

  Context& context_;
  const ThreadTable& threads_;
  SignalActions actions_;
  SentSignals sent_{Tid(getpid())};
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_PLUGIN_SIGNAL_RECORDER_H_
