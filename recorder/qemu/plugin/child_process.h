// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#ifndef CLEW_RECORDER_QEMU_PLUGIN_CHILD_PROCESS_H_
#define CLEW_RECORDER_QEMU_PLUGIN_CHILD_PROCESS_H_

#include <array>
#include <cstdint>
#include <optional>

#include "recorder/qemu/guest_memory.h"
#include "recorder/qemu/plugin/child_notes.h"

namespace clew::recorder {

// A process that the recorded program made, or one that such a process made.
// It is not recorded. What it does that QEMU carries out otherwise than the
// kernel (common/linux/deviations.h) is noted for the recorded one, and where
// it executes its own file by procfs, which has QEMU's there, it executes the
// program's. Any thread of the process.
class ChildProcess {
 public:
  // `notes` outlives this.
  explicit ChildProcess(ChildNotes& notes) : notes_(notes) {}
  // In the process that such a call has made.
  void Start(uint64_t number, const std::array<uint64_t, 6>& args);
  // A thread is about to make a call, and has made it.
  void Begin(uint64_t number, const std::array<uint64_t, 6>& args);
  void End(int64_t result);

 private:
  ChildNotes& notes_;
  std::optional<GuestMemory> memory_;  // nullopt: it cannot be opened
  bool by_vfork_ = false;
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_PLUGIN_CHILD_PROCESS_H_
