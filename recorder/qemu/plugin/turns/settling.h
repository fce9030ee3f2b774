// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#ifndef CLEW_RECORDER_QEMU_PLUGIN_TURNS_SETTLING_H_
#define CLEW_RECORDER_QEMU_PLUGIN_TURNS_SETTLING_H_

#include <vector>

#include "common/units.h"
#include "recorder/qemu/plugin/thread.h"
#include "recorder/qemu/plugin/turns/turn_lock.h"

namespace clew::recorder {

// Returns once the kernel shows `sleeper` asleep, or its call has returned.
void AwaitAsleep(const Thread& sleeper);

// Threads that gave the turn away and are still on their way into the kernel.
//
// Invariant: when a thread begins its turn, every other one that went to sleep
// on a futex is asleep, and every one that ended is gone or, as a process's
// first thread is while others run, a zombie. Otherwise the order in which the
// kernel sees them would be left to the host: the new turn could change the
// futex's word before a sleeper has read it. Of a thread that ended, QEMU
// clears its id in memory and wakes who waits for that.
class Settling {
 public:
  void AddSleeper(const Locked& /*lock*/, const Thread& sleeper) {
    sleepers_.push_back(&sleeper);
  }
  void AddLeaving(const Locked& /*lock*/, Tid thread) {
    leaving_.push_back(thread);
  }
  // Returns when all have settled but `me`, which has the turn.
  void Await(const Thread& me);

 private:
  std::vector<const Thread*> sleepers_;
  std::vector<Tid> leaving_;
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_PLUGIN_TURNS_SETTLING_H_
