#ifndef CLEW_RECORDER_TRACER_RUNTIME_FRAGMENT_WRITER_H_
#define CLEW_RECORDER_TRACER_RUNTIME_FRAGMENT_WRITER_H_

#include <cstdint>

#include "recorder/tracer/runtime/runtime.h"

namespace clew::tracer {

// Translates the fragment that begins at `start`; code can be read up to `end`.
// Returns its number; the recorder can read it then.
uint32_t WriteFragment(Runtime& runtime, uint64_t start, uint64_t end);

}  // namespace clew::tracer

#endif  // CLEW_RECORDER_TRACER_RUNTIME_FRAGMENT_WRITER_H_
