// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#ifndef CLEW_RECORDER_QEMU_PLUGIN_PLUGIN_RECORDER_H_
#define CLEW_RECORDER_QEMU_PLUGIN_PLUGIN_RECORDER_H_

#include <time.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "common/result.h"
#include "recorder/qemu/plugin/child_process.h"
#include "recorder/qemu/plugin/guest_env.h"
#include "recorder/qemu/plugin/parts.h"
#include "recorder/qemu/plugin/syscalls.h"
#include "recorder/qemu/plugin/translation_block.h"
#include "recorder/qemu/plugin_config.h"

namespace clew::recorder {

// The recording of this process: what QEMU tells, handed to the parts. One
// thread of the program has the turn; all methods are called by it, unless they
// say otherwise. Threads come in through EnterThread and EndSyscall, where they
// wait for their turn.
class PluginRecorder {
 public:
  [[nodiscard]] static Result<std::unique_ptr<PluginRecorder>> Create(
      const PluginConfig& config);

  // QEMU made a CPU: the first, or for the thread being cloned.
  void AddThread(unsigned vcpu);
  // A thread's first block. Waits for its turn. False if QEMU dropped its
  // translations meanwhile, so that the block must be entered anew.
  bool EnterThread(unsigned vcpu, uint64_t ip, GuestEnv env);
  // The turn's time is up inside g_runner.block, before instruction `index`.
  // Others go on; returns when it is this thread's turn again.
  void EndTurn(uint64_t index);
  // The thread's CPU is gone (after its exit).
  void ForgetThread(unsigned vcpu);

  void BeginSyscall(unsigned vcpu, uint64_t number,
                    const std::array<uint64_t, 6>& args);
  // Any thread; waits for the turn if the call gave it away.
  void EndSyscall(unsigned vcpu, int64_t result);

  // A system call of `vcpu` returned `result`: true if this is a child process
  // that it has just made.
  bool IsChild(unsigned vcpu, int64_t result) const;
  // This process, a child, is not recorded: it leaves everything to its parent.
  // Of the recording only OnFlush, EnterThread and child may be called
  // afterwards.
  void BecomeChild();

  // A block that is a signal handler's start. True if a signal was delivered.
  bool EnterHandler(const TranslationBlock& block, GuestEnv env);
  // `signal` ends the process; its effects on the registers are final.
  [[noreturn]] void EndBySignal(int32_t signal);

  // Any thread: QEMU translates a block.
  void Translate(qemu_plugin_tb* tb) { parts_.code.Translate(tb); }
  // A block with a code_version is entered; the block before is closed.
  void ShowVersion(const TranslationBlock& block) {
    parts_.code.ShowVersion(block);
  }
  // QEMU is about to drop its translations.
  void OnFlush();

  // The watch of the time limit, a thread of its own that blocks all signals.
  [[noreturn]] void WatchTime() { parts_.watch.Run(); }

  // True while the thread that has the turn is in a system call of its own.
  static bool InSyscall() {
    return g_runner.thread == nullptr || g_runner.thread->in_syscall;
  }
  // For sched_setaffinity(2); see VirtualCores. nullopt: not a call of the
  // program.
  std::optional<int> SetAffinity(pid_t pid,
                                 std::span<const uint8_t> mask) const {
    return InProgramsCall() ? parts_.cores.Set(pid, mask) : std::nullopt;
  }
  // Of the thread that has the turn, in translated code.
  void NoteMxcsr(uint64_t addr) { parts_.deviations.NoteMxcsr(addr); }
  void NoteX87Status() { parts_.deviations.NoteX87Status(); }
  // What time(2) gives where the thread that has the turn is calling it.
  std::optional<time_t> SecondsOfCall() const;
  // For a system call of the recorded program under way; nullptr: there is
  // none.
  TimerCalls* timer_calls() {
    return InProgramsCall() ? &parts_.timers : nullptr;
  }
  ChildProcess& child() { return child_; }
  bool virtual_tsc() const { return parts_.context.config.virtual_tsc; }

 private:
  PluginRecorder(Context context, CodeFiles code_files, ChildNotes notes);
  static bool InProgramsCall() {
    return g_runner.thread != nullptr && g_runner.thread->in_syscall;
  }
  void Start(Thread& me, uint64_t ip);
  // Called with what Turns returned: a lock means that no thread will ever have
  // the turn.
  void EndIfHung(std::optional<Locked> lock);

  Parts parts_;
  Syscalls syscalls_{parts_};
  ChildProcess child_{parts_.child_notes};
  bool started_ = false;
  bool is_child_ = false;  // see BecomeChild
};

// Set once, by the plugin's install function. QEMU's callbacks come without an
// argument of our own.
extern PluginRecorder* g_recorder;

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_PLUGIN_PLUGIN_RECORDER_H_
