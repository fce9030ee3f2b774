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

#include "recorder/qemu/plugin/child_notes.h"
#include "recorder/qemu/plugin/context.h"
#include "recorder/qemu/plugin/thread.h"

namespace clew::recorder {

// What the program did that QEMU carries out otherwise than the kernel
// (common/linux/deviations.h). Of the thread that has the turn. With
// PluginConfig::strict the first one ends the recording.
class Deviations {
 public:
  Deviations(Context& context, const ChildNotes& child_notes)
      : context_(context), child_notes_(child_notes) {}

  // The call of `me` returned `result`.
  void Note(const Thread& me, int64_t result);
  // LDMXCSR has loaded what is at `addr`.
  void NoteMxcsr(uint64_t addr);
  // FNSTSW is about to store.
  void NoteX87Status();
  // A thread that gave `robust_list` (0: none) is about to end.
  void NoteThreadEnd(uint64_t robust_list);

  // Each once, in the order in which they came; those of child processes last.
  std::vector<std::string> phrases() const;

 private:
  void Add(const std::optional<std::string>& phrase);

  Context& context_;
  const ChildNotes& child_notes_;
  std::vector<std::string> phrases_;
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_PLUGIN_DEVIATIONS_H_
