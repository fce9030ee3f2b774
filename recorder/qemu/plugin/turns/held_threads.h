// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#ifndef CLEW_RECORDER_QEMU_PLUGIN_TURNS_HELD_THREADS_H_
#define CLEW_RECORDER_QEMU_PLUGIN_TURNS_HELD_THREADS_H_

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "recorder/qemu/calls/timed_wait.h"
#include "recorder/qemu/plugin/thread.h"
#include "recorder/qemu/plugin/turns/turn_lock.h"
#include "recorder/qemu/virtual_clock.h"

namespace clew::recorder {

// The threads that are held before a wait with a time limit, in the order in
// which they came to be held, and the earliest of their deadlines.
class HeldThreads {
 public:
  void Add(const Locked& /*lock*/, Thread& thread, const TimedWait& wait) {
    thread.held = wait;
    threads_.push_back(&thread);
    next_deadline_ns_ = std::min(next_deadline_ns_, wait.deadline_ns);
  }

  bool empty(const Locked& /*lock*/) const { return threads_.empty(); }
  // On the virtual clock; VirtualClock::kNever: no thread is held.
  uint64_t next_deadline_ns(const Locked& /*lock*/) const {
    return next_deadline_ns_;
  }

  // Those of whom `condition` is true; they are held no longer.
  template <class Condition>
  [[nodiscard]] std::vector<Thread*> TakeIf(const Locked& /*lock*/,
                                            const Condition& condition) {
    std::vector<Thread*> kept;
    std::vector<Thread*> taken;
    next_deadline_ns_ = VirtualClock::kNever;
    for (Thread* thread : threads_) {
      if (thread->held.has_value() && !condition(*thread)) {
        next_deadline_ns_ =
            std::min(next_deadline_ns_, thread->held->deadline_ns);
        kept.push_back(thread);
      } else {
        thread->held.reset();
        taken.push_back(thread);
      }
    }
    threads_ = std::move(kept);
    return taken;
  }

 private:
  std::vector<Thread*> threads_;
  uint64_t next_deadline_ns_ = VirtualClock::kNever;
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_PLUGIN_TURNS_HELD_THREADS_H_
