// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#ifndef CLEW_RECORDER_QEMU_PLUGIN_TURNS_TIMED_WAITS_H_
#define CLEW_RECORDER_QEMU_PLUGIN_TURNS_TIMED_WAITS_H_

#include <time.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "recorder/qemu/calls/syscall_effects.h"
#include "recorder/qemu/calls/timed_wait.h"
#include "recorder/qemu/lateness.h"
#include "recorder/qemu/plugin/context.h"
#include "recorder/qemu/plugin/signal_recorder.h"
#include "recorder/qemu/plugin/thread.h"
#include "recorder/qemu/plugin/turns/program_time.h"
#include "recorder/qemu/plugin/turns/thread_table.h"
#include "recorder/qemu/plugin/turns/turns.h"

namespace clew::recorder {

// Waits with a time limit, decided on the program's own clock.
//
// A thread whose call would wait is held before its SYSCALL instruction, as if
// it had been preempted there. It goes on when the time is over by the virtual
// clock, or the futex's word has changed and somebody wakes for it; then its
// call does not wait: the kernel is shown a time limit that is over. It also
// goes on before a thread sends it a signal, and then waits in the kernel, so
// that the signal finds it there. Once the program has set a timer that sends
// signals, none is held: the host's kernel keeps the time limits, since only
// there such a signal interrupts a wait.
//
// All methods are called by the thread that has the turn, at its SYSCALL
// instruction.
class TimedWaits {
 public:
  // References outlive this.
  TimedWaits(Context& context, const ProgramTime& time,
             const ThreadTable& threads, Turns& turns,
             const SignalRecorder& signals)
      : context_(context),
        time_(time),
        threads_(threads),
        turns_(turns),
        signals_(signals),
        lateness_(context.config.scheduler.seed) {}

  // From now on a timer may interrupt a wait.
  void SetTimersSignal() { timers_signal_ = true; }
  // Returns when `call` may be made, with what it waits for; nullopt if it is
  // not such a call.
  std::optional<TimedWait> HoldUntilDue(Thread& me, const SyscallCall& call);
  // Shows the kernel the time limit with which it is to wait, after
  // HoldUntilDue. Returns when that ends the wait, by the virtual clock;
  // nullopt: it is not the kernel that keeps it. Until RestoreLimit the
  // program's memory has another one than the program wrote.
  std::optional<uint64_t> ShowLimit(Thread& me, const TimedWait& wait);
  void RestoreLimit(Thread& me);
  // Whether the program itself would read something else in `ranges`.
  bool ShowsOtherLimit(const std::vector<MemoryRange>& ranges) const;
  // Threads that are held, and that `call` is going to send a signal, wait in
  // the kernel when this returns.
  void LetBeInterrupted(Thread& me, const SyscallCall& call);

 private:
  bool IsDue(const TimedWait& wait) const;
  timespec OnHost(const TimedWait& wait) const;
  bool SetLimit(Thread& me, uint64_t addr, const timespec& limit);

  Context& context_;
  const ProgramTime& time_;
  const ThreadTable& threads_;
  Turns& turns_;
  const SignalRecorder& signals_;
  Lateness lateness_;
  bool timers_signal_ = false;
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_PLUGIN_TURNS_TIMED_WAITS_H_
