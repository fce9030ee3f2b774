#ifndef CLEW_REPLAYER_CHECK_STEPS_H_
#define CLEW_REPLAYER_CHECK_STEPS_H_

#include <vector>

#include "common/result.h"
#include "common/schedule.h"
#include "follower/process.h"

namespace clew::replayer {

// Fails with kCorruptInput, with the number of the step, if it is one of a
// thread that the process does not have, or of a store buffer that its memory
// model does not have. Does not check how far the steps go.
[[nodiscard]] Status CheckSteps(const std::vector<ScheduleStep>& steps,
                                const follower::Process& process);

}  // namespace clew::replayer

#endif  // CLEW_REPLAYER_CHECK_STEPS_H_
