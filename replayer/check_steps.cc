#include "replayer/check_steps.h"

namespace clew::replayer {

Status CheckSteps(const std::vector<ScheduleStep>& steps,
                  const follower::Process& process) {
  const bool has_buffers = process.actor_count() > process.thread_count();
  for (size_t i = 0; i < steps.size(); ++i) {
    if (!process.tape().IndexOf(steps[i].thread)) {
      return CorruptInput(
          "schedule.pb: step {}: thread is {}, wanted one that has a stream", i,
          steps[i].thread);
    }
    if (steps[i].kind != ScheduleStep::Kind::kRun && !has_buffers) {
      return CorruptInput(
          "schedule.pb: step {}: flush is true, wanted false: sequential "
          "consistency delays no store",
          i);
    }
  }
  return {};
}

}  // namespace clew::replayer
