#ifndef CLEW_RECORDER_TRACER_RUNTIME_SHORT_BLOCK_H_
#define CLEW_RECORDER_TRACER_RUNTIME_SHORT_BLOCK_H_

#include <cstdint>

#include "recorder/tracer/runtime/runtime.h"

namespace clew::tracer {

// Copies the instructions at `addr` up to the first that transfers control,
// with it, or that may change the code that follows (code_check.h), but at most
// `insns`, to run once: over the last ones that were
// copied so. Behind them the runtime is entered (tracer_cut). Returns whether
// there is one: neither what is stepped nor what cannot be executed is copied.
// REQUIRES: the caller has the runtime's lock; insns > 0; the program runs in
// leaps.
bool WriteShortBlock(Runtime& runtime, uint64_t addr, uint64_t insns);

}  // namespace clew::tracer

#endif  // CLEW_RECORDER_TRACER_RUNTIME_SHORT_BLOCK_H_
