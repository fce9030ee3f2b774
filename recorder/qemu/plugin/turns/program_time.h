// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#ifndef CLEW_RECORDER_QEMU_PLUGIN_TURNS_PROGRAM_TIME_H_
#define CLEW_RECORDER_QEMU_PLUGIN_TURNS_PROGRAM_TIME_H_

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "recorder/qemu/plugin/turns/turn_lock.h"
#include "recorder/qemu/tracer.h"
#include "recorder/qemu/virtual_clock.h"

namespace clew::recorder {

// How late it is for the program. Ticks count the instructions that all cores
// have retired. The program's clocks show a time made of them, and of what was
// skipped or passed while no thread could run. What the time limit counts is
// the ticks, and the real time in which all threads waited for something
// outside; how fast the host is does not matter.
class ProgramTime {
 public:
  // 0: without a limit.
  explicit ProgramTime(uint32_t limit_s)
      : limit_s_(limit_s), clock_(VirtualClock::HostsStart()) {}

  // When the last turn ended. Of whoever has the turn or the lock.
  uint64_t turn_end() const {
    return turn_end_.load(std::memory_order_relaxed);
  }
  void set_turn_end(uint64_t ticks) {
    turn_end_.store(ticks, std::memory_order_relaxed);
  }
  // As late as it is, in the middle of a turn, too. Any thread.
  uint64_t Ticks() const;
  // Whether an instruction of the program has run.
  static bool HasBegun(uint64_t ticks) { return ticks != kFirstTick; }
  static uint64_t InsnsUntil(uint64_t ticks) { return ticks - kFirstTick; }

  const VirtualClock& clock() const { return clock_; }
  // Skips to `deadline_ns`, if it is later than `ticks`.
  void SkipTo(const Locked& lock, uint64_t deadline_ns, uint64_t ticks);
  // From now on no thread can run; real time counts until PassIdle says so, and
  // from then until it says so again.
  void BeginIdle(const Locked& lock);
  void PassIdle(const Locked& lock);

  // The time limit. Any thread.
  bool IsOver(uint64_t ticks) const;
  void CountWaiting(uint64_t ns) { waited_ns_ += ns; }

 private:
  const uint64_t limit_s_;
  std::atomic<uint64_t> turn_end_ = kFirstTick;
  std::atomic<uint64_t> waited_ns_ = 0;
  VirtualClock clock_;
  uint64_t idle_since_ns_ = 0;  // by the host's clock; as far as it was counted
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_PLUGIN_TURNS_PROGRAM_TIME_H_
