// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#ifndef CLEW_RECORDER_QEMU_PLUGIN_TIMER_CALLS_H_
#define CLEW_RECORDER_QEMU_PLUGIN_TIMER_CALLS_H_

#include <time.h>

#include <cstdint>
#include <map>
#include <optional>

#include "recorder/qemu/plugin/turns/program_time.h"
#include "recorder/qemu/plugin/turns/turns.h"
#include "recorder/qemu/program_timers.h"

namespace clew::recorder {

// The program's timers and the time limits that the host's kernel keeps. All
// methods are called by the thread that has the turn.
class TimerCalls {
 public:
  // References outlive this.
  TimerCalls(ProgramTime& time, Turns& turns, uint64_t seed)
      : time_(time),
        turns_(turns),
        timers_(time.clock(), seed),
        lateness_(~seed) {}

  // As ProgramTimers, in the midst of the system call of the thread.
  std::optional<itimerspec> Set(const ProgramTimers::Key& key,
                                uint64_t clock_id, bool absolute,
                                const itimerspec& wanted) {
    return timers_.Set(key, clock_id, absolute, wanted, Now());
  }
  itimerspec Left(const ProgramTimers::Key& key, const itimerspec& host_left) {
    CatchUp();
    return timers_.Left(key, host_left, Now());
  }
  // Of timers that timer_create(2) made; UINT64_MAX: it made no such timer.
  void NoteClock(uint64_t timer, uint64_t clock_id) {
    clocks_[timer] = clock_id;
  }
  uint64_t ClockOf(uint64_t timer) const {
    const auto found = clocks_.find(timer);
    return found == clocks_.end() ? UINT64_MAX : found->second;
  }

  // The program is about to read its clock: it is no earlier there than the
  // timers that have expired.
  void CatchUp();
  // A wait of the thread ended by its time limit, which is `end_ns` by the
  // virtual clock: it is some time later.
  void EndWait(uint64_t end_ns);

 private:
  static ProgramTimers::Now Now() {
    return {.host_ns = HostNs(), .ticks = g_runner.block_end};
  }
  void SkipTo(uint64_t ns);

  ProgramTime& time_;
  Turns& turns_;
  ProgramTimers timers_;
  Lateness lateness_;
  std::map<uint64_t, uint64_t> clocks_;
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_PLUGIN_TIMER_CALLS_H_
