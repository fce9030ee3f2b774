// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#ifndef CLEW_RECORDER_QEMU_PLUGIN_TURNS_TURNS_H_
#define CLEW_RECORDER_QEMU_PLUGIN_TURNS_TURNS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "recorder/qemu/calls/futex_model.h"
#include "recorder/qemu/calls/syscall_effects.h"
#include "recorder/qemu/calls/timed_wait.h"
#include "recorder/qemu/plugin/code_recorder.h"
#include "recorder/qemu/plugin/context.h"
#include "recorder/qemu/plugin/thread.h"
#include "recorder/qemu/plugin/turns/held_threads.h"
#include "recorder/qemu/plugin/turns/program_time.h"
#include "recorder/qemu/plugin/turns/settling.h"
#include "recorder/qemu/plugin/turns/thread_table.h"
#include "recorder/qemu/plugin/turns/turn_lock.h"
#include "recorder/qemu/scheduler.h"

namespace clew::recorder {

// Who has the turn, and how it goes from one thread to another.
//
// Invariant: at most one thread has the turn, and only that one executes
// instructions of the program; its copy of the state is g_runner. Every other
// thread is in one of four places: it waits for its turn in QEMU or in the
// midst of a block (Enter, EndTurn), it is held before a SYSCALL instruction
// until a time (Hold), it is inside a system call that may wait (LetWait), or
// it is back from that and waits for its turn (AwaitReturn).
//
//   Ready ──GrantNext──> turn ──EndTurn────────────> Ready
//     ^                   ├─────Hold───> held ─────> Ready   due, woken, signal
//     │                   ├───LetWait─> in kernel ┐
//     └──AwaitReturn──────┼────────────────────────┘
//                         └─────Forget             gone
//
// Example: A has the turn and makes a futex wait. LetWait takes its turn away,
// and GrantNext gives it to B, which begins once the kernel shows A asleep
// (Settling). B wakes A by a futex call, which FutexReturned hears of first, so
// that A is Ready from this tick on, whenever the host lets it come back. A
// comes back to AwaitReturn and waits there until B's turn ends.
class Turns {
 public:
  // References outlive this.
  Turns(Context& context, ProgramTime& time, ThreadTable& threads,
        CodeRecorder& code)
      : context_(context),
        time_(time),
        threads_(threads),
        code_(code),
        scheduler_(context.config.scheduler) {}

  [[nodiscard]] Locked Lock() { return lock_.Take(); }
  // nullopt: another thread holds the lock.
  [[nodiscard]] std::optional<Locked> TryLock() { return lock_.TryTake(); }

  // The first thread gets the first turn, with Enter.
  void Start(Thread& me);
  // `child`, which was made, can run.
  void AddReady(Thread& child);
  // `me`, at its first block, waits for its turn. Returns false if QEMU dropped
  // its translations meanwhile, so that the block must be entered anew.
  bool Enter(Thread& me);
  // Called when the time of `me`, at stop_index of its block, is up. Others go
  // on; returns when it is its turn again.
  void EndTurn(Thread& me);
  // Like EndTurn before the last instruction of g_runner.block, but `me` cannot
  // run until `wait` is over or it is woken or interrupted.
  void Hold(Thread& me, const TimedWait& wait);
  // Called when a system call callback has ended and `me` is about to wait in
  // the kernel. Returns the lock if no thread will ever have the turn.
  [[nodiscard]] std::optional<Locked> LetWait(Thread& me);
  // `me` is back from where LetWait let it go; returns when it is its turn.
  void AwaitReturn(Thread& me, int64_t result);
  // `me` has made its last system call, and keeps the turn until Forget.
  void Exit(Thread& me);
  // Called when the CPU of `me` is gone, after Exit; `me` must not be used
  // afterwards. Returns the lock as LetWait does.
  [[nodiscard]] std::optional<Locked> Forget(Thread& me);

  // The futex call of the thread that has the turn returned `result`.
  void FutexReturned(const FutexCall& call, int64_t result);
  // Threads that are held, and of which `interrupted` is true, can run. Returns
  // false if there is none.
  bool ReleaseIf(const std::function<bool(Thread&)>& interrupted);
  // From now on time can end a wait from outside.
  void SetUsesTimers() { uses_timers_ = true; }

  // QEMU drops its translations. Returns true if a thread is inside a block,
  // and would return into code that is gone.
  bool CountFlush() {
    ++flushes_;
    return parked_ > 0;
  }
  // How often the turn went to another thread.
  uint64_t handovers() const { return handovers_; }

 private:
  // The `turn` of a thread that has it and may sleep; nullptr: none does.
  using Sleeper = std::atomic<uint32_t>*;
  // The caller wakes what is returned once it has released the lock, which the
  // sleeper may want before the caller runs again.
  Sleeper GrantNext(const Locked& lock, uint64_t now);
  static void Wake(Sleeper sleeper);
  // Grants and wakes, or returns the lock if no thread will ever have the turn.
  std::optional<Locked> GrantNextUnlessHung(Locked lock, uint64_t now);
  bool AllWaitForever(const Locked& lock) const;

  // Where a thread waits: in QEMU, at the start of its first block, or in
  // translated code that it goes on with.
  enum class Waits : uint8_t { kOutside, kAtFirstBlock, kInsideBlock };
  void WaitForTurn(Thread& me, Waits where);
  void WaitWhileHeld(Thread& me);
  Sleeper PassIdleTime();
  void Begin(Thread& me);
  void LeaveCoreAt(Thread& me, uint64_t index, uint64_t now);

  void MakeReady(const Locked& lock, Thread& thread);
  void MakeReady(const Locked& lock, const std::vector<Thread*>& threads);
  void ArriveFromFutex(const Locked& lock, Thread& me, int64_t result);
  void ReadyArrived(const Locked& lock);
  void SkipToDeadline(const Locked& lock, uint64_t now);
  void ReleaseDue(const Locked& lock, uint64_t now);
  void ReleaseChanged(const Locked& lock, uint64_t addr);

  Context& context_;
  ProgramTime& time_;
  ThreadTable& threads_;
  CodeRecorder& code_;
  TurnLock lock_;
  Scheduler scheduler_;
  FutexModel futexes_;
  HeldThreads held_;
  Settling settling_;
  uint64_t handovers_ = 0;
  std::atomic<uint32_t> flushes_ = 0;
  std::atomic<int> parked_ = 0;  // inside translated code, without the turn
  uint64_t deadline_ = 0;        // of the turn granted last
  Scheduler::Slot last_slot_ = UINT32_MAX;
  bool idle_ = true;  // no thread has the turn
  bool uses_timers_ = false;
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_PLUGIN_TURNS_TURNS_H_
