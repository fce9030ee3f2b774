#include "replayer/enforce.h"

#include <array>
#include <span>

#include "common/digest.h"
#include "follower/describe_run.h"
#include "follower/run_schedule.h"
#include "replayer/check_steps.h"

namespace clew::replayer {

using follower::Process;

Result<EnforceReport> Enforce(const follower::Recording& recording,
                              const Schedule& schedule, OutputSink* output,
                              ProgressSink* progress) {
  CLEW_ASSIGN_OR_RETURN(session, follower::OpenedRecording::Open(recording));
  CLEW_RETURN_IF_ERROR(CheckSteps(schedule.steps, session->start()));
  Process process = session->start();
  process.mutable_memory().EnableDigest();
  if (output != nullptr) {
    process.set_output_sink(
        [output](Tid, int fd, std::span<const std::byte> bytes) {
          if (fd == 1 || fd == 2) {
            output->OnOutput(bytes);
          }
        });
  }
  EnforceReport report;
  CLEW_ASSIGN_OR_RETURN(wrong, follower::RunSchedule(process, schedule.steps,
                                                     {.progress = progress}));
  report.divergence = std::move(wrong);
  report.insns = process.retired_total();
  report.memory_digest = process.memory().digest();
  report.outputs_differing = process.outputs_differing();
  if (!report.divergence) {
    CLEW_ASSIGN_OR_RETURN(end, follower::CheckEnd(process, recording.failure));
    report.divergence = std::move(end);
  }
  return report;
}

uint64_t StepsDigest(const std::vector<ScheduleStep>& steps) {
  uint64_t digest = kEmptyDigest;
  for (const ScheduleStep& step : steps) {
    const std::array<uint64_t, 3> words = {
        static_cast<uint64_t>(step.kind) + 2 * uint64_t{step.queue},
        static_cast<uint64_t>(step.thread.as_int()), step.until_insn};
    digest = Digest(std::as_bytes(std::span(words)), digest);
  }
  return digest;
}

}  // namespace clew::replayer
