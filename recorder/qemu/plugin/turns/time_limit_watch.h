// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#ifndef CLEW_RECORDER_QEMU_PLUGIN_TURNS_TIME_LIMIT_WATCH_H_
#define CLEW_RECORDER_QEMU_PLUGIN_TURNS_TIME_LIMIT_WATCH_H_

#include <atomic>
#include <cstdint>

#include "recorder/qemu/plugin/context.h"
#include "recorder/qemu/plugin/ending.h"
#include "recorder/qemu/plugin/turns/program_time.h"
#include "recorder/qemu/plugin/turns/turns.h"

namespace clew::recorder {

// Ends the recording when ProgramTime::IsOver while no thread can run, because
// all wait for something outside. (A thread that runs sees its time limit at
// the end of its turn: a program that waits for nothing outside ends at the
// same instruction each time.)
class TimeLimitWatch {
 public:
  // References outlive this.
  TimeLimitWatch(Context& context, ProgramTime& time, Turns& turns,
                 Ending& ending)
      : context_(context), time_(time), turns_(turns), ending_(ending) {}

  // Runs in a thread of its own that blocks all signals.
  [[noreturn]] void Run();
  // Any thread, back from a call for which it kept its turn. Does not return if
  // the watch is ending the recording.
  void AwaitEnd();

 private:
  void EndIfWaiting(uint64_t ticks);
  void EndIfStuck();

  Context& context_;
  ProgramTime& time_;
  Turns& turns_;
  Ending& ending_;
  std::atomic<bool> ends_ = false;  // Run is about to end the recording
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_PLUGIN_TURNS_TIME_LIMIT_WATCH_H_
