// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#ifndef CLEW_RECORDER_QEMU_PLUGIN_RECORDING_H_
#define CLEW_RECORDER_QEMU_PLUGIN_RECORDING_H_

#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "common/result.h"
#include "common/sent_signals.h"
#include "recorder/qemu/file_mappings.h"
#include "recorder/qemu/futex_model.h"
#include "recorder/qemu/generated_code.h"
#include "recorder/qemu/guest_memory.h"
#include "recorder/qemu/plugin/held_threads.h"
#include "recorder/qemu/plugin/signal_actions.h"
#include "recorder/qemu/plugin/thread.h"
#include "recorder/qemu/plugin/tracer.h"
#include "recorder/qemu/plugin/turn_lock.h"
#include "recorder/qemu/scheduler.h"
#include "recorder/qemu/session.h"
#include "recorder/qemu/timed_wait.h"
#include "recorder/qemu/virtual_clock.h"

namespace clew::recorder {

// The recording of this process. One thread of the program has the turn; all
// methods are called by it, unless they say otherwise. Threads come in through
// EnterThread and ReturnFromSyscall, where they wait for their turn.
class Recording {
 public:
  static constexpr unsigned kThreadsMax = 1024;

  [[nodiscard]] static Result<std::unique_ptr<Recording>> Create(
      const Session& session);

  // --- Threads and turns (turns.cc) ---

  // QEMU made a CPU: the first, or for the thread being cloned.
  void AddThread(unsigned vcpu);
  // A thread's first block. Waits for its turn. False if QEMU dropped its
  // translations meanwhile, so that the block must be entered anew.
  bool EnterThread(unsigned vcpu, uint64_t ip, GuestEnv env);
  // The turn's time is up inside g_runner.block, before instruction `index`.
  // Others go on; returns when it is this thread's turn again.
  void EndTurn(uint64_t index);
  // A system call callback ended; the thread is about to wait in the kernel.
  void Block(Thread& me);
  // The thread's CPU is gone (after ExitThread).
  void ForgetThread(unsigned vcpu);

  // --- System calls (syscalls.cc) ---

  void BeginSyscall(unsigned vcpu, uint64_t number,
                    const std::array<uint64_t, 6>& args);
  // Any thread; waits for the turn if the call gave it away.
  void EndSyscall(unsigned vcpu, int64_t result);

  // --- Other processes and programs (processes.cc) ---

  // A system call of `vcpu` returned `result`: true if this is a child process
  // that it has just made.
  bool IsChild(unsigned vcpu, int64_t result) const;
  // This process, a child, is not recorded: it leaves everything to its parent.
  // Of the recording only OnFlush and EnterThread may be called afterwards.
  void BecomeChild();

  // --- Signals (signals.cc) ---

  // A block that is a signal handler's start. True if a signal was delivered.
  bool EnterHandler(const clew::recorder::Block& block, GuestEnv env);

  // --- Code (code.cc) ---

  // Any thread: QEMU translates a block.
  void Translate(qemu_plugin_tb* tb);
  // A block with a code_version is entered; the block before is closed.
  void ShowVersion(const clew::recorder::Block& block);

  // --- Ends (ending.cc); none returns ---

  [[noreturn]] void EndByExit(int32_t status);
  // `signal` ends the process; its effects on the registers are final.
  [[noreturn]] void EndBySignal(int32_t signal);
  [[noreturn]] void Refuse(const std::string& why);
  // Any thread: refuses without a turn, where the state is not known.
  [[noreturn]] void GiveUp(const std::string& why);

  // --- The time limit (watch.cc) ---

  // The watch, a thread of its own that blocks all signals.
  [[noreturn]] void WatchTime();

  // True while the thread that has the turn is in a system call of its own.
  bool InSyscall() const {
    return g_runner.thread == nullptr || g_runner.thread->in_syscall;
  }
  // What time(2) gives where the thread that has the turn is calling it.
  std::optional<time_t> SecondsOfCall() const;
  bool virtual_tsc() const { return session_.virtual_tsc; }
  // QEMU is about to drop its translations.
  void OnFlush();

 private:
  Recording(const Session& session, GuestMemory memory,
            std::unique_ptr<SizeLimit> limit, std::unique_ptr<Tracer> tracer,
            RawFile outcome, RawFile raw_code, RawFile code_list);

  // turns.cc
  // The `turn` of a thread that has it and may sleep; nullptr: none does.
  using Sleeper = std::atomic<uint32_t>*;
  // The caller wakes what is returned once it has released the lock, which the
  // sleeper may want before the caller runs again.
  Sleeper GrantNext(const Locked& lock, uint64_t now);
  void MakeReady(const Locked& lock, Thread& thread);
  // Where a thread waits: in QEMU, at the start of its first block, or in
  // translated code that it goes on with.
  enum class Waits : uint8_t { kOutside, kAtFirstBlock, kInsideBlock };
  void WaitForTurn(Thread& me, Waits where);
  void Wake(Sleeper sleeper);
  void Begin(Thread& me);
  void Settle(const Thread& me);
  bool AllWaitForever(const Locked& lock) const;
  // Ends the recording if nobody will ever have the turn; else lets go of the
  // lock.
  void EndIfHung(Locked lock);
  static void AwaitAsleep(const Thread& sleeper);
  void StartMainThread(Thread& me, uint64_t ip);
  void AwaitReturn(Thread& me, int64_t result);
  void ArriveFromFutex(const Locked& lock, Thread& me, int64_t result);
  void ReadyArrived(const Locked& lock);
  Thread& ThreadOf(unsigned vcpu);

  // held.cc
  std::optional<TimedWait> HoldTimedWait(Thread& me, const SyscallCall& call);
  bool IsDue(const TimedWait& wait) const;
  void ShowTimeLimit(Thread& me, const TimedWait& wait);
  bool ShowsOtherTimeLimit(const std::vector<MemoryRange>& ranges) const;
  void NoteReads(SyscallCall& call) const;
  void LetBeInterrupted(Thread& me, const SyscallCall& call);
  void Hold(Thread& me, const TimedWait& wait);
  void WaitWhileHeld(Thread& me);
  bool SetTimeLimit(Thread& me, uint64_t addr, const timespec& limit);
  void RestoreTimeLimit(Thread& me);
  void ShowVirtualTime(const Thread& me);
  void BeginIdle(const Locked& lock);
  void PassIdleTime(const Locked& lock);
  void SkipToDeadline(const Locked& lock, uint64_t now_ticks);
  void ReleaseDue(const Locked& lock, uint64_t now_ticks);
  void ReleaseChanged(const Locked& lock, uint64_t addr);
  bool ReleaseSignalled(const Locked& lock, uint64_t tid, uint64_t signal);
  void MakeReady(const Locked& lock, const std::vector<Thread*>& threads);

  // signals.cc
  struct Delivery;
  bool IsDelivery(const Delivery& entry) const;
  void Align(Delivery& entry);
  SentTo SentToOf(const Delivery& entry) const;
  void Deliver(Delivery& entry);
  int CodeOf(const Delivery& entry) const;
  void CloseBlockByDelivery(const Delivery& entry);

  // syscalls.cc
  void CheckSyscallBlock();
  void RefuseLargeMapping(uint64_t number, const std::array<uint64_t, 6>& args);
  void CloseBlockBySyscall(Thread& me);
  void ExitThread(Thread& me);
  void RecordExit(Thread& me);
  void EndIfDeadly(Thread& me);
  void RecordSyscall(Thread& me, int64_t result);
  void AfterSyscall(Thread& me, int64_t result);
  void AfterClone(Thread& me, int64_t result);
  void AfterFutex(Thread& me, int64_t result);
  void AfterMmap(Thread& me, int64_t result);
  void AfterSigaction(const Thread& me);
  void AfterSigmask(Thread& me);
  bool Blocks(uint64_t target_tid, uint64_t signal) const;
  void ShowVirtualCores(const Thread& me, int64_t result);
  void CheckFsBase(Thread& me, int64_t result);

  // code.cc
  static std::vector<ExecMapping> CodeOfFiles(
      const std::vector<GuestRegion>& regions);
  void MapInitialCode();
  void WriteCodeChange(const CodeChange& change);
  void MapCode(const ExecMapping& mapping);
  void ReleaseCode(const SyscallCall& call, uint64_t result);

  // processes.cc
  void BeginExec(const Thread& me);

  // ending.cc
  [[noreturn]] void EndByTimeLimit(uint64_t now);
  void CloseBlockBySignal(Thread& me, int32_t signal);
  // Keep the lock for good.
  [[noreturn]] void Finish(Locked lock, const Failure& failure);
  [[noreturn]] void FinishAs(Locked lock, FailureKind kind);
  Status CloseThreads(uint64_t now);
  Status CloseFiles();
  Status NameWhatIsThere();
  Status CloseThread(Thread& thread, uint64_t now);
  Status WriteCoreFile(const Failure& failure);
  DumpedThread DumpedRegisters(const Thread& thread) const;
  void WriteOutcome(const Outcome& outcome);
  [[noreturn]] void Leave(const Failure& failure);

  // watch.cc
  bool TimeIsOver(uint64_t now_ticks) const;
  uint64_t Ticks();
  void EndIfWaiting(uint64_t now_ticks);
  void EndIfStuck();
  void AwaitEnd();

  // start.cc
  Status WriteStartState(Thread& me, uint64_t ip);
  void NameInitialMappings(const Thread& me,
                           const std::vector<GuestRegion>& regions);
  void OpenInputs(Thread& thread);

  Session session_;
  GuestMemory memory_;
  std::unique_ptr<SizeLimit> limit_;  // of the files below but the outcome
  std::unique_ptr<Tracer> tracer_;
  RawFile outcome_;
  BlockTable blocks_;
  std::mutex code_mutex_;  // guards the next three
  bool initial_code_mapped_ = false;
  GeneratedCode code_;
  RawFile raw_code_;
  std::vector<uint64_t> versions_shown_;  // of code_, by core
  TurnLock turn_lock_;
  Scheduler scheduler_;
  FutexModel futexes_;
  FileMappings files_;
  VirtualClock virtual_clock_;
  HeldThreads held_;
  uint64_t idle_since_ns_ = 0;  // by the host's clock; as far as it was counted
  std::array<std::unique_ptr<Thread>, kThreadsMax> by_vcpu_;
  std::vector<Thread*> by_slot_;    // nullptr: ended
  Thread* newborn_ = nullptr;       // made, and its clone has not returned
  std::vector<Thread*> unsettled_;  // blocked, and maybe not asleep yet
  std::vector<Tid> leaving_;        // ended, and maybe not gone yet
  static constexpr uint64_t kFirstTick = 4096;
  uint64_t clock_ = kFirstTick;  // when the last turn ended
  uint64_t handovers_ = 0;
  std::atomic<uint32_t> flushes_ = 0;
  std::atomic<int> parked_ = 0;  // inside translated code, without the turn
  std::atomic<uint64_t> waited_ns_ = 0;  // counts for the time limit
  std::atomic<bool> ending_ = false;     // the watch is about to end it
  uint64_t deadline_ = 0;                // of the turn granted last
  Scheduler::Slot last_slot_ = UINT32_MAX;
  bool idle_ = true;  // no thread has the turn
  bool started_ = false;
  bool uses_timers_ = false;
  bool is_child_ = false;          // see BecomeChild
  uint64_t unreadable_bytes_ = 0;  // of threads that ended

  // Of the start, for the core dump.
  uint64_t stack_addr_ = 0;
  uint64_t brk_ = 0;
  uint64_t memory_end_ = kGuestEnd;  // no page of the program is above
  std::vector<std::byte> auxv_;
  std::string program_;
  std::string arguments_;

  SignalActions actions_;
  SentSignals sent_signals_{Tid(getpid())};
};

// Set once, by the plugin's install function.
extern Recording* g_recording;

PageProtection QemuPageProtection();

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_PLUGIN_RECORDING_H_
