#ifndef CLEW_SOLVER_CHECK_H_
#define CLEW_SOLVER_CHECK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/progress.h"
#include "common/result.h"
#include "common/schedule.h"
#include "follower/recording.h"

namespace clew::solver {

// What an independent run of a schedule showed.
struct CheckReport {
  // Empty: the schedule agrees with every recorded path, system call, order by
  // time and core, and the failure. Otherwise what does not agree, and where.
  std::optional<std::string> disagreement;
  follower::MemoryComparison memory;  // compared with the core dump, if any
  follower::RegisterComparison registers;  // compared with it, too
  uint64_t memory_digest = 0;
  uint64_t outputs_differing = 0;
  uint64_t insns = 0;
};

// Returns whether there is memory in the core dump and nothing of the dump
// differs.
bool AgreesWithCoreDump(const CheckReport& report);

// Runs `steps` from the beginning of the recording on a process of its own,
// with nothing of the search's state. A schedule is a witness only if this
// finds no disagreement. Fails as OpenedRecording::Open, RunSchedule and
// CheckEnd do.
[[nodiscard]] Result<CheckReport> CheckSchedule(
    const follower::Recording& recording,
    const std::vector<ScheduleStep>& steps, ProgressSink* progress);

// Runs the only thread of a recording from beginning to end: CheckSchedule of
// the one order that there is. `steps` becomes that order. REQUIRES: nothing is
// recorded of a second thread.
[[nodiscard]] Result<CheckReport> CheckOnlyThread(
    const follower::Recording& recording, std::vector<ScheduleStep>& steps,
    ProgressSink* progress);

}  // namespace clew::solver

#endif  // CLEW_SOLVER_CHECK_H_
