// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#ifndef CLEW_RECORDER_QEMU_PLUGIN_INPUT_LOGS_H_
#define CLEW_RECORDER_QEMU_PLUGIN_INPUT_LOGS_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "common/result.h"
#include "recorder/qemu/input_writer.h"
#include "recorder/qemu/plugin/context.h"
#include "recorder/qemu/plugin/thread.h"

namespace clew::recorder {

// The parts of the input log: one file for each thread, made when its number is
// known.
class InputLogs {
 public:
  // `context` outlives this.
  explicit InputLogs(Context& context) : context_(context) {}

  // REQUIRES: thread.tid.
  void Open(Thread& thread) {
    auto file =
        RawFile::Create(RawInputsPath(context_.config.folder, thread.tid),
                        context_.limit.get());
    if (!file) {
      context_.GiveUp(file.error().message);
    }
    thread.inputs = std::make_unique<InputWriter>(thread.tid, std::move(*file),
                                                  context_.memory);
  }

  [[nodiscard]] Status Close(Thread& thread) {
    unreadable_bytes_ += thread.inputs->unreadable_bytes();
    return thread.inputs->file().Close();
  }

  // Whether the kernel wrote something, for a thread whose log is closed, that
  // could not be read.
  bool lacks_bytes() const { return unreadable_bytes_ > 0; }

 private:
  Context& context_;
  uint64_t unreadable_bytes_ = 0;
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_PLUGIN_INPUT_LOGS_H_
