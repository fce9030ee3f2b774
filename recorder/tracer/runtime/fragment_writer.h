#ifndef CLEW_RECORDER_TRACER_RUNTIME_FRAGMENT_WRITER_H_
#define CLEW_RECORDER_TRACER_RUNTIME_FRAGMENT_WRITER_H_

#include <cstdint>

#include "recorder/tracer/runtime/executable.h"
#include "recorder/tracer/runtime/runtime.h"

namespace clew::tracer {

// Translates the fragment that begins at `start`, in that memory; in leaps, as
// one that is stepped if `always_steps`. Returns its number; the recorder can
// read it then.
uint32_t WriteFragment(Runtime& runtime, uint64_t start,
                       const Executable& memory, bool always_steps);

}  // namespace clew::tracer

#endif  // CLEW_RECORDER_TRACER_RUNTIME_FRAGMENT_WRITER_H_
