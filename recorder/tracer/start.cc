#include "recorder/tracer/start.h"

#include "recorder/tracer/inject.h"

namespace clew::tracer {

Result<int32_t> StartTraced(const TraceeLaunch& launch, SharedMemory& shared) {
  CLEW_ASSIGN_OR_RETURN(process, TracedProcess::Start(launch));
  CLEW_RETURN_IF_ERROR(Inject(process, shared));
  CLEW_RETURN_IF_ERROR(process.Detach(process.first_thread(), 0));
  return process.process();
}

}  // namespace clew::tracer
