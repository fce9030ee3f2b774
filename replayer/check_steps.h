#ifndef CLEW_REPLAYER_CHECK_STEPS_H_
#define CLEW_REPLAYER_CHECK_STEPS_H_

#include <vector>

#include "common/result.h"
#include "common/schedule.h"
#include "follower/tape.h"

namespace clew::replayer {

// kCorruptInput, with the number of the step: a step of a thread that the
// recording does not have, or of a kind that sequential consistency does not
// know. Takes no account of how far the steps go.
[[nodiscard]] Status CheckSteps(const std::vector<ScheduleStep>& steps,
                                const follower::Tape& tape);

}  // namespace clew::replayer

#endif  // CLEW_REPLAYER_CHECK_STEPS_H_
