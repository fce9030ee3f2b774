#ifndef CLEW_RECORDER_NATIVE_NATIVE_WAITS_H_
#define CLEW_RECORDER_NATIVE_NATIVE_WAITS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "recorder/native/native_state.h"
#include "recorder/qemu/lateness.h"

namespace clew::recorder {

// Sleeps until another thread of the program wakes it, or has ended.
bool WaitsForever(const NativeThread& thread, int32_t process);

// Waits with a time limit, decided on the program's own clock
// (NativeState::clock).
//
// A thread whose call would wait is held before its SYSCALL instruction, as if
// it had been preempted there. It goes on when the time is over by the virtual
// clock; then the call is not made, and has the result of a wait that is over.
// It also goes on when the futex's word has changed and somebody wakes for it,
// and then the kernel does not let it wait. And it goes on before a thread of
// the program sends it a signal, and then waits in the kernel, so that the
// signal finds it there. Once the program has set a timer that sends signals,
// none is held: the kernel keeps the time limits, since only there such a
// signal interrupts a wait.
//
// Where no thread can run, and nothing outside can change that, the clock is
// moved on to the first time limit.
class NativeWaits {
 public:
  // Tells that `thread`, which was held, is able to run.
  using OnReady = std::function<void(NativeThread& thread)>;
  // `state` outlives this. Without state.clock no thread is held, and Hold,
  // Begin and End are not called.
  NativeWaits(NativeState& state, OnReady on_ready)
      : state_(state),
        on_ready_(std::move(on_ready)),
        lateness_(state.config.scheduler.seed) {}

  // Whether `thread`, which is at its SYSCALL with stack pointer `sp`, is not
  // to make `call` yet.
  bool Hold(NativeThread& thread, const SyscallCall& call, uint64_t sp);
  // The call is about to be made. Returns its result if the kernel is not to be
  // asked; else the kernel is shown how long it is to wait.
  std::optional<int64_t> Begin(NativeThread& thread, const SyscallCall& call);
  // It ended with that result.
  void End(NativeThread& thread, const SyscallCall& call, int64_t result);
  // `call` has returned `result`, or its thread has ended: who is held for a
  // word that it changed can run.
  void NoteWake(const SyscallCall& call, int64_t result);
  void NoteChange(uint64_t addr);

  // Threads whose time is over can run, and those that have got a signal.
  void Release();
  // Called where no thread can run. Returns whether one can now: another
  // process changed a word, or the clock was moved on.
  bool SkipToDeadline();

 private:
  bool IsDue(const TimedWait& wait) const;
  bool AwaitTarget(NativeThread& thread, const SyscallCall& call);
  void ShowLimit(NativeThread& thread, const TimedWait& wait);
  void ReleaseSignaled();
  bool WaitsOutside(const NativeThread& thread) const;
  bool HasChild() const;
  template <class Condition>
  void ReleaseIf(const Condition& condition);

  NativeState& state_;
  OnReady on_ready_;
  Lateness lateness_;
  bool timers_signal_ = false;
  uint64_t held_ = 0;             // threads
  uint64_t signals_seen_ns_ = 0;  // host's time, when ReleaseSignaled looked
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_NATIVE_NATIVE_WAITS_H_
