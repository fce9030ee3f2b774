// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#ifndef CLEW_RECORDER_QEMU_PLUGIN_PROGRAM_START_H_
#define CLEW_RECORDER_QEMU_PLUGIN_PROGRAM_START_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/result.h"
#include "recorder/qemu/core_file.h"
#include "recorder/qemu/guest_memory.h"
#include "recorder/qemu/plugin/context.h"
#include "recorder/qemu/plugin/thread.h"

namespace clew::recorder {

// The state at the program's first instruction, and what the end of the
// recording needs of it: where the stack and the heap began, and what the
// kernel said of the program.
class ProgramStart {
 public:
  // `context` outlives this.
  explicit ProgramStart(Context& context) : context_(context) {}

  // `me`, the first thread, is about to run its first instruction, at `ip`.
  [[nodiscard]] Status Write(const Thread& me, uint64_t ip, uint64_t now);
  // The program's name and the files of its code, as events of thread `main`.
  void NameMappings(Tid main, const std::vector<GuestRegion>& regions,
                    uint64_t now);

  // The program mapped a page at `addr`.
  void NoteMapping(uint64_t addr) {
    memory_end_ = addr >= memory_end_ ? UINT64_MAX : memory_end_;
  }
  // The program's memory as it is mapped by now.
  [[nodiscard]] Result<std::vector<GuestRegion>> Regions() const;
  // A core dump's description of the process, without threads.
  DumpedProcess Describe() const;

 private:
  Context& context_;
  uint64_t stack_addr_ = 0;
  uint64_t brk_ = 0;
  uint64_t memory_end_ = kGuestEnd;  // no page of the program is above
  std::vector<std::byte> auxv_;
  std::string program_;
  std::string arguments_;
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_PLUGIN_PROGRAM_START_H_
