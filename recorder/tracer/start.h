#ifndef CLEW_RECORDER_TRACER_START_H_
#define CLEW_RECORDER_TRACER_START_H_

#include <cstdint>

#include "common/os/ptrace.h"
#include "common/result.h"
#include "recorder/tracer/shared_memory.h"

namespace clew::tracer {

// Starts a program in the tracer. Returns its process, a child of this one that
// ptrace(2) does not know any more; the caller waits for its end. Fails as
// TracedProcess::Start and Inject do; the program has been ended then.
[[nodiscard]] Result<int32_t> StartTraced(const TraceeLaunch& launch,
                                          SharedMemory& shared);

}  // namespace clew::tracer

#endif  // CLEW_RECORDER_TRACER_START_H_
