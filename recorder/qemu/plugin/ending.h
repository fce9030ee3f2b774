// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#ifndef CLEW_RECORDER_QEMU_PLUGIN_ENDING_H_
#define CLEW_RECORDER_QEMU_PLUGIN_ENDING_H_

#include <cstdint>

#include "common/inputs.h"
#include "common/result.h"
#include "recorder/qemu/calls/file_mappings.h"
#include "recorder/qemu/plugin/code_recorder.h"
#include "recorder/qemu/plugin/context.h"
#include "recorder/qemu/plugin/deviations.h"
#include "recorder/qemu/plugin/input_logs.h"
#include "recorder/qemu/plugin/program_start.h"
#include "recorder/qemu/plugin/turns/program_time.h"
#include "recorder/qemu/plugin/turns/thread_table.h"
#include "recorder/qemu/plugin/turns/turns.h"

namespace clew::recorder {

// How a recording ends: everything is written out, and then the process ends as
// the program did. No method returns.
class Ending {
 public:
  // What is closed and written out; all of it outlives this.
  struct Parts {
    Context& context;
    ProgramTime& time;
    const ThreadTable& threads;
    Turns& turns;
    CodeRecorder& code;
    InputLogs& inputs;
    ProgramStart& start;
    const FileMappings& files;
    const Deviations& deviations;
  };
  explicit Ending(const Parts& parts) : parts_(parts) {}

  // By the thread that has the turn.
  [[noreturn]] void EndByExit(int32_t status);
  // `signal` ends the process; its effects on the registers are final.
  [[noreturn]] void EndBySignal(int32_t signal);
  // No thread brings it about. Keeps the lock for good.
  [[noreturn]] void EndAs(Locked lock, FailureKind kind, uint64_t now);

 private:
  // `faulted`: it is a signal that the failing instruction raised.
  [[noreturn]] void Finish(Locked lock, const Failure& failure,
                           bool faulted = false);
  [[noreturn]] static void Leave(const Failure& failure);
  // Returns whether it is one that the instruction at rip raised.
  static bool CloseBlockBySignal(Thread& me, int32_t signal);
  Outcome Describe(const Failure& failure) const;
  Status CloseFiles();
  Status NameWhatIsThere();
  Status CloseThreads();
  Status CloseThread(Thread& thread);
  Status WriteCoreFile(const Failure& failure, bool faulted);

  Parts parts_;
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_PLUGIN_ENDING_H_
