#ifndef CLEW_RECORDER_TRACER_FREE_FREE_RUN_H_
#define CLEW_RECORDER_TRACER_FREE_FREE_RUN_H_

#include <cstdint>
#include <memory>

#include "common/result.h"
#include "recorder/native/program_run.h"

namespace clew::tracer {

// Brings the runtime into a program that is stopped at its first instruction,
// so that it runs there, all threads at once. Of its trace and inputs the end
// is kept, as RecordingRing does, if `ring_bytes` is not 0. Fails as Inject and
// SharedMemory::Create do.
[[nodiscard]] Result<std::unique_ptr<recorder::ProgramRun>> MakeFreeRun(
    recorder::NativeState& state, recorder::NativeProgram& program,
    uint64_t ring_bytes);

}  // namespace clew::tracer

#endif  // CLEW_RECORDER_TRACER_FREE_FREE_RUN_H_
