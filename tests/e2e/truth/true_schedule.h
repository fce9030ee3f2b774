#ifndef CLEW_TESTS_E2E_TRUTH_TRUE_SCHEDULE_H_
#define CLEW_TESTS_E2E_TRUTH_TRUE_SCHEDULE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/result.h"
#include "common/schedule.h"
#include "common/units.h"

// What truly happened in a recorded run, from the file that
// RecordOptions::turns_path names. One tick of the recorder's clock is one
// retired instruction, so who had the turn when is the time of each
// instruction, and a schedule.

namespace clew::e2e {

// What one thread did in one turn.
struct Turn {
  Tid thread;
  uint64_t start_tick = 0;
  uint64_t insns = 0;
};

// kCorruptInput: the file is absent, or does not end with a line of thread 0.
[[nodiscard]] Result<std::vector<Turn>> ReadTurns(const std::string& path);

// When each instruction of a thread retired: the n-th one at ticks[n].
std::map<Tid, std::vector<uint64_t>> TrueTicks(const std::vector<Turn>& turns);

std::vector<ScheduleStep> TrueSchedule(const std::vector<Turn>& turns);

}  // namespace clew::e2e

#endif  // CLEW_TESTS_E2E_TRUTH_TRUE_SCHEDULE_H_
