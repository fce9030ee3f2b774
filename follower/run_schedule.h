#ifndef CLEW_FOLLOWER_RUN_SCHEDULE_H_
#define CLEW_FOLLOWER_RUN_SCHEDULE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/progress.h"
#include "common/result.h"
#include "common/schedule.h"
#include "follower/order_rules.h"
#include "follower/process.h"

namespace clew::follower {

struct ScheduleRunOptions {
  // Asked before each block of a thread whether it may run now; nullptr: none
  // is asked. Borrowed.
  OrderRules* rules = nullptr;
  // Called with the thread (index) before each step.
  std::function<void(size_t thread)> before_step = {};
  ProgressSink* progress = nullptr;  // may be null
};

// Of a step: its thread runs to the end of its stream.
inline constexpr uint64_t kToItsEnd = ~uint64_t{0};

// Takes `steps` on `process`, which is at the start of its recording, and lets
// its tape forget what they have passed. Returns where the run left the
// recording or the schedule, for people, or nullopt if it left neither. Fails
// as Process::Run does.
[[nodiscard]] Result<std::optional<std::string>> RunSchedule(
    Process& process, const std::vector<ScheduleStep>& steps,
    const ScheduleRunOptions& options = {});

}  // namespace clew::follower

#endif  // CLEW_FOLLOWER_RUN_SCHEDULE_H_
