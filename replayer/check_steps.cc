#include "replayer/check_steps.h"

namespace clew::replayer {

Status CheckSteps(const std::vector<ScheduleStep>& steps,
                  const follower::Process& process) {
  for (size_t i = 0; i < steps.size(); ++i) {
    if (!process.tape().IndexOf(steps[i].thread)) {
      return CorruptInput(
          "schedule.pb: step {}: thread is {}, wanted one that has a stream", i,
          steps[i].thread);
    }
    if (steps[i].kind == ScheduleStep::Kind::kRun) {
      continue;
    }
    if (process.queues() == 0) {
      return CorruptInput(
          "schedule.pb: step {}: flush is true, wanted false: sequential "
          "consistency delays no store",
          i);
    }
    if (steps[i].queue > process.queues()) {
      return CorruptInput("schedule.pb: step {}: queue is {}, wanted 0..{}", i,
                          steps[i].queue, process.queues());
    }
  }
  return {};
}

}  // namespace clew::replayer
