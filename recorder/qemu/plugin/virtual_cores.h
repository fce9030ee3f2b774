// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#ifndef CLEW_RECORDER_QEMU_PLUGIN_VIRTUAL_CORES_H_
#define CLEW_RECORDER_QEMU_PLUGIN_VIRTUAL_CORES_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>

#include "recorder/qemu/calls/syscall_effects.h"
#include "recorder/qemu/plugin/turns/thread_table.h"

namespace clew::recorder {

// The cores that the program is shown. Which of them a thread is to run on is
// kept and told, and the scheduler takes no notice of it. All methods are
// called by the thread that has the turn.
class VirtualCores {
 public:
  // `count` is 1 to 64; `threads` outlives this.
  VirtualCores(uint32_t count, const ThreadTable& threads)
      : count_(count), threads_(threads) {}

  // For sched_setaffinity(2). Returns 0 or an error number; nullopt if `pid` is
  // no thread of the program.
  std::optional<int> Set(pid_t pid, std::span<const uint8_t> mask) const;
  // After sched_getaffinity(2), which returned `result`.
  void Show(const SyscallCall& call, int64_t result) const;

 private:
  Thread* ThreadOf(pid_t pid) const;
  uint64_t All() const;

  uint32_t count_;
  const ThreadTable& threads_;
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_PLUGIN_VIRTUAL_CORES_H_
