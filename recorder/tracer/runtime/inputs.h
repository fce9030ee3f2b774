#ifndef CLEW_RECORDER_TRACER_RUNTIME_INPUTS_H_
#define CLEW_RECORDER_TRACER_RUNTIME_INPUTS_H_

#include <array>
#include <cstdint>

#include "recorder/tracer/runtime/runtime.h"

// What comes into the program, told among the batches of a thread
// (shared_layout.h, ToldHead): what the kernel writes, by the rules that the
// recorder gave (InputRules). It is handed on at once, before what is in the
// log.

namespace clew::tracer {

// Whether the thread tells what comes in.
inline bool TellsInputs(const ThreadState& thread) {
  return thread.tell.is_recorded != 0;
}

// A system call, with what must be known from before it is made.
struct ToldBefore {
  uint64_t number = 0;
  std::array<uint64_t, 6> arguments = {};
  uint64_t entered_tsc = 0;
  // That an argument points to, where the kernel writes no more than that.
  uint32_t length_before = 0;
};

// The thread is about to make that call.
ToldBefore BeforeCall(ThreadState& thread, uint64_t number,
                      const std::array<uint64_t, 6>& arguments);

// Tells what came of it: `result` as the program sees it; kNotMade (signals.h):
// nothing.
void TellCall(ThreadState& thread, const ToldBefore& call, uint64_t result);

// Tells of exit(2), which does not return, before it is made.
void TellEnd(ThreadState& thread, const ToldBefore& call);

// Tells that a handler begins: its frame of `frame_bytes` is at signal.rsp.
void TellSignal(ThreadState& thread, const ToldSignal& signal,
                uint64_t frame_bytes);

// Tells what the instruction at `ip` left in the registers, which are in the
// state.
void TellInsn(ThreadState& thread, uint64_t ip);

}  // namespace clew::tracer

#endif  // CLEW_RECORDER_TRACER_RUNTIME_INPUTS_H_
