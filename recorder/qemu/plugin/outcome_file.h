// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#ifndef CLEW_RECORDER_QEMU_PLUGIN_OUTCOME_FILE_H_
#define CLEW_RECORDER_QEMU_PLUGIN_OUTCOME_FILE_H_

#include <string>
#include <utility>

#include "recorder/qemu/plugin_config.h"
#include "recorder/qemu/raw_file.h"

namespace clew::recorder {

// Ends the process at once, all threads of it.
[[noreturn]] void ExitProcess(int status);

// How the recording ended. The file is open since the start: the program may
// have given up the right to make one.
class OutcomeFile {
 public:
  explicit OutcomeFile(RawFile file) : file_(std::move(file)) {}

  // At most once.
  void Write(const Outcome& outcome);
  // Any thread, with a turn or without: the recording stops here, and `why` is
  // all that is left of it.
  [[noreturn]] void GiveUp(const std::string& why);
  // Writes nothing and closes, in a copy of the process.
  void Abandon() { file_.Abandon(); }

 private:
  RawFile file_;
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_PLUGIN_OUTCOME_FILE_H_
