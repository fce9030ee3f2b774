// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#ifndef CLEW_RECORDER_QEMU_PLUGIN_DEVIATIONS_H_
#define CLEW_RECORDER_QEMU_PLUGIN_DEVIATIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "recorder/qemu/calls/syscall_effects.h"
#include "recorder/qemu/plugin/context.h"

namespace clew::recorder {

// What the program did that QEMU carries out otherwise than the kernel
// (common/linux/deviations.h). Of the thread that has the turn. With
// PluginConfig::strict the first one ends the recording.
class Deviations {
 public:
  explicit Deviations(Context& context) : context_(context) {}

  // `call` returned `result`.
  void Note(const SyscallCall& call, int64_t result);
  // A thread that gave `robust_list` (0: none) is about to end.
  void NoteThreadEnd(uint64_t robust_list);

  // Each once, in the order in which they came.
  const std::vector<std::string>& phrases() const { return phrases_; }

 private:
  void Add(const std::optional<std::string>& phrase);

  Context& context_;
  std::vector<std::string> phrases_;
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_PLUGIN_DEVIATIONS_H_
