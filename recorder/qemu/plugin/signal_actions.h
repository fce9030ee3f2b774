// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#ifndef CLEW_RECORDER_QEMU_PLUGIN_SIGNAL_ACTIONS_H_
#define CLEW_RECORDER_QEMU_PLUGIN_SIGNAL_ACTIONS_H_

#include <signal.h>

#include <array>
#include <cstdint>

namespace clew::recorder {

// What the program does with a signal: the kernel's struct sigaction without
// its mask. Source: linux include/linux/signal_types.h.
struct SignalAction {
  uint64_t handler = 0;
  uint64_t flags = 0;
  uint64_t restorer = 0;

  bool is_default() const { return handler == kDefault; }
  // A handler of the program's.
  bool is_handled() const { return handler != kDefault && handler != kIgnore; }

 private:
  static constexpr uint64_t kDefault = 0;  // SIG_DFL
  static constexpr uint64_t kIgnore = 1;   // SIG_IGN
};

// Whether the CPU raises it, for an instruction.
inline bool IsFaultSignal(int signal) {
  return signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE ||
         signal == SIGILL || signal == SIGTRAP;
}

// The actions of a process, by the number of the signal.
class SignalActions {
 public:
  // nullptr: there is no such signal.
  const SignalAction* Find(uint64_t signal) const {
    return signal > 0 && signal < actions_.size() ? &actions_[signal] : nullptr;
  }
  // Whether the handler of `signal` is given a siginfo.
  bool TakesInfo(uint64_t signal) const {
    const SignalAction* const action = Find(signal);
    return action != nullptr && (action->flags & SA_SIGINFO) != 0;
  }
  // False: there is no such signal.
  [[nodiscard]] bool Set(uint64_t signal, const SignalAction& action) {
    if (Find(signal) == nullptr) {
      return false;
    }
    actions_[signal] = action;
    return true;
  }

 private:
  std::array<SignalAction, 65> actions_ = {};
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_PLUGIN_SIGNAL_ACTIONS_H_
