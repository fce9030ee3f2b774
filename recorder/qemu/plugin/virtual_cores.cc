// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#include "recorder/qemu/plugin/virtual_cores.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "recorder/qemu/plugin/guest_env.h"

namespace clew::recorder {

// 0 is the caller; nullptr: none of the program's.
Thread* VirtualCores::ThreadOf(pid_t pid) const {
  for (Thread* thread : threads_.all()) {
    if (pid == 0 ? thread == g_runner.thread : thread->tid == Tid(pid)) {
      return thread;
    }
  }
  return nullptr;
}

uint64_t VirtualCores::All() const { return UINT64_MAX >> (64 - count_); }

std::optional<int> VirtualCores::Set(pid_t pid,
                                     std::span<const uint8_t> mask) const {
  Thread* const thread = ThreadOf(pid);
  if (thread == nullptr) {
    return std::nullopt;
  }
  uint64_t wanted = 0;
  std::memcpy(&wanted, mask.data(), std::min(mask.size(), sizeof(wanted)));
  if ((wanted & All()) == 0) {
    return EINVAL;
  }
  thread->affinity = wanted;
  return 0;
}

// The program sees the virtual cores, not the one CPU that QEMU is pinned to.
void VirtualCores::Show(const SyscallCall& call, int64_t result) const {
  const Thread* const thread = ThreadOf(static_cast<pid_t>(call.args[0]));
  if (result <= 0 || thread == nullptr) {
    return;
  }
  auto* mask = GuestPointer<uint8_t>(call.args[2]);
  const uint64_t cores = All() & thread->affinity;
  const auto bytes = static_cast<size_t>(result);
  std::memset(mask, 0, bytes);
  std::memcpy(mask, &cores, std::min(bytes, sizeof(cores)));
}

}  // namespace clew::recorder
