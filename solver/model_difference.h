#ifndef CLEW_SOLVER_MODEL_DIFFERENCE_H_
#define CLEW_SOLVER_MODEL_DIFFERENCE_H_

#include <cstdint>
#include <optional>

#include "follower/process.h"
#include "follower/recording.h"

namespace clew::solver {

// Where clew's model of the kernel or of the CPU shows that it differs from
// what was recorded. What differs may be an earlier effect that shows here: the
// last call is where to look first.
struct ModelDifference {
  // The furthest contradiction; without a thread (tid 0) if nobody could go on.
  follower::Contradiction at;
  // Number of the last system call of that thread before it; absent if there
  // is none or the inputs cannot be read.
  std::optional<uint64_t> last_call;
};

// Returns the difference that the contradiction shows. Reads the inputs of its
// thread up to there.
ModelDifference DifferenceAt(const follower::Recording& recording,
                             const follower::Contradiction& at);

}  // namespace clew::solver

#endif  // CLEW_SOLVER_MODEL_DIFFERENCE_H_
