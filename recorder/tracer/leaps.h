#ifndef CLEW_RECORDER_TRACER_LEAPS_H_
#define CLEW_RECORDER_TRACER_LEAPS_H_

#include <cstdint>
#include <memory>

#include "common/result.h"
#include "recorder/native/leaps.h"

namespace clew::tracer {

// Runs the program in leaps by the runtime in it. All threads of `process`,
// which is borrowed, are stopped, each in user mode. `fragments_kept` as in
// SharedHeader. Fails as SharedMemory::Create and Inject do.
[[nodiscard]] Result<std::unique_ptr<recorder::Leaps>> MakeLeaps(
    TracedProcess& process, uint32_t fragments_kept);

}  // namespace clew::tracer

#endif  // CLEW_RECORDER_TRACER_LEAPS_H_
