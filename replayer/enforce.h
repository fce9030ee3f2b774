#ifndef CLEW_REPLAYER_ENFORCE_H_
#define CLEW_REPLAYER_ENFORCE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "common/progress.h"
#include "common/result.h"
#include "common/schedule.h"
#include "follower/recording.h"
#include "replayer/target.h"

namespace clew::replayer {

// What one replay from beginning to end showed.
struct EnforceReport {
  // Where the replay left the recording, or did not end as it did; nullopt: it
  // follows every recorded path and system call and fails in the same way.
  std::optional<std::string> divergence;
  uint64_t insns = 0;
  uint64_t memory_digest = 0;  // at the end
  uint64_t outputs_differing = 0;
};

// Runs the schedule once, forwards, as fast as it goes; keeps nothing of what
// it has passed. Output of the program goes to `output`; both pointers are
// borrowed and may be nullptr. Fails with kCorruptInput if the schedule does
// not fit the recording, and as OpenedRecording::Open and Process::Run do; a
// divergence is not an error.
[[nodiscard]] Result<EnforceReport> Enforce(
    const follower::Recording& recording, const Schedule& schedule,
    OutputSink* output, ProgressSink* progress);

// Returns a digest that tells two lists of steps apart.
uint64_t StepsDigest(const std::vector<ScheduleStep>& steps);

}  // namespace clew::replayer

#endif  // CLEW_REPLAYER_ENFORCE_H_
