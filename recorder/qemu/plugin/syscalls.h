// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#ifndef CLEW_RECORDER_QEMU_PLUGIN_SYSCALLS_H_
#define CLEW_RECORDER_QEMU_PLUGIN_SYSCALLS_H_

#include <time.h>

#include <array>
#include <cstdint>
#include <optional>

#include "recorder/qemu/calls/syscall_effects.h"
#include "recorder/qemu/plugin/parts.h"
#include "recorder/qemu/plugin/thread.h"

namespace clew::recorder {

// The program's system calls, in the order in which each of them goes: the
// block before is closed, the call may give the turn away, the kernel does it
// (QEMU for the kernel), its effects are recorded, and the parts of the
// recording that it changes are told.
class Syscalls {
 public:
  // `parts` outlive this.
  explicit Syscalls(Parts& parts) : parts_(parts) {}

  // `me`, which has the turn, is at its SYSCALL instruction.
  void Begin(Thread& me, uint64_t number, const std::array<uint64_t, 6>& args);
  // Whether the call that `me` has begun may wait in the kernel, so that others
  // get the turn.
  bool MayWait(const Thread& me) const;
  // The call of `me` returned `result`; waits for the turn if the call gave it
  // away.
  void End(Thread& me, int64_t result);
  // The thread is gone, after its exit(2).
  void RecordExit(Thread& me);

  // What time(2) gives where `me`, which has the turn, is calling it.
  std::optional<time_t> SecondsOfCall(const Thread& me) const;

 private:
  void CheckBlock();
  void CloseBlock(Thread& me);
  void Enter(Thread& me, const SyscallCall& call);
  void NoteReads(SyscallCall& call) const;
  void Leave(Thread& me);
  void Record(Thread& me, int64_t result);
  void FollowUp(Thread& me, int64_t result);
  void AfterClone(Thread& me, int64_t result);
  void AfterMmap(const Thread& me, int64_t result);
  void AfterSigaction(const Thread& me);
  void ShowVirtualTime(const Thread& me) const;
  void CheckFsBase(const Thread& me, int64_t result);

  Parts& parts_;
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_PLUGIN_SYSCALLS_H_
