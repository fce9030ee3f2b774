#ifndef CLEW_REPLAYER_ARRIVE_H_
#define CLEW_REPLAYER_ARRIVE_H_

#include <cstddef>

#include "common/result.h"
#include "follower/process.h"

namespace clew::replayer {

// Brings `thread` to its next instruction where the kernel has to: delivers the
// signal whose handler begins there, or lets the call return that is made
// again. Retires nothing. Returns whether there was anything to do. Fails with
// kCorruptInput if the replay diverges, and as Process::Run does. REQUIRES: the
// thread is the next to retire an instruction.
[[nodiscard]] Result<bool> Arrive(follower::Process& process, size_t thread);

}  // namespace clew::replayer

#endif  // CLEW_REPLAYER_ARRIVE_H_
