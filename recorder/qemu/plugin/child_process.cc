// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#include "recorder/qemu/plugin/child_process.h"

#include <asm/unistd_64.h>
#include <sched.h>

#include "common/linux/deviations.h"
#include "recorder/qemu/calls/syscall_effects.h"
#include "recorder/qemu/plugin/context.h"
#include "recorder/qemu/plugin/exec.h"

namespace clew::recorder {
namespace {

thread_local SyscallCall t_call;

bool IsVfork(uint64_t number, const std::array<uint64_t, 6>& args) {
  return number == __NR_vfork ||
         (number == __NR_clone && (args[0] & CLONE_VFORK) != 0);
}

}  // namespace

// Its memory is another than that of the process that made it.
void ChildProcess::Start(uint64_t number, const std::array<uint64_t, 6>& args) {
  by_vfork_ = IsVfork(number, args);
  memory_.reset();
  if (auto opened = GuestMemory::Open(QemuPageProtection())) {
    memory_.emplace(*std::move(opened));
  }
}

// The parent of one that vfork made may look for what it wrote into the memory
// that they should share: posix_spawn(3) finds there why it failed.
void ChildProcess::Begin(uint64_t number, const std::array<uint64_t, 6>& args) {
  t_call.number = number;
  t_call.args = args;
  if (number == __NR_exit_group && by_vfork_) {
    notes_.Add(DeviationOfVforkEnd());
  } else if (number == __NR_execve && memory_) {
    ExecOwnFile(*memory_, args);
  }
}

void ChildProcess::End(int64_t result) {
  if (result == 0 && MakesProcess(t_call)) {
    Start(t_call.number, t_call.args);
    return;
  }
  if (!memory_) {
    return;
  }
  const auto load = [&](uint64_t addr) {
    return memory_->Load<uint64_t>(addr);
  };
  if (const auto phrase =
          DeviationOf(t_call.number, t_call.args, result, load)) {
    notes_.Add(*phrase);
  }
}

}  // namespace clew::recorder
