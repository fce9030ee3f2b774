#ifndef CLEW_RECORDER_TRACER_RUNTIME_SIGNAL_ACTIONS_H_
#define CLEW_RECORDER_TRACER_RUNTIME_SIGNAL_ACTIONS_H_

#include <signal.h>

#include <array>
#include <cstdint>

#include "recorder/tracer/runtime/runtime.h"

namespace clew::tracer {

// What the program wants done at its signals. The kernel is told the same, but
// that each handler is the runtime's (tracer_signal), on the runtime's signal
// stack, with all signals blocked.

inline Actions& ActionsOf(ThreadState& thread) {
  return *static_cast<Actions*>(thread.signals.actions);
}

// Makes rt_sigaction for the program.
uint64_t SetAction(ThreadState& thread,
                   const std::array<uint64_t, 6>& arguments);

// Takes over what the kernel was told before the runtime was there, and gives
// it back.
void TakeOverActions(Runtime& runtime);
void GiveBackActions(Runtime& runtime);

// Returns what is to be done, and forgets it with SA_RESETHAND.
KernelAction TakeAction(ThreadState& thread, uint64_t signal);

// Gives a thread that shares its memory, and not its actions, its own.
void CopyActions(ThreadState& thread, const ThreadState& from);

// Ends the process as by a signal without a handler.
[[noreturn]] void EndBy(uint64_t signal);

}  // namespace clew::tracer

#endif  // CLEW_RECORDER_TRACER_RUNTIME_SIGNAL_ACTIONS_H_
