#include "replayer/enforce.h"

#include <algorithm>
#include <array>
#include <span>

#include "common/check.h"
#include "common/digest.h"
#include "follower/verdict.h"
#include "replayer/check_steps.h"

namespace clew::replayer {
namespace {

using follower::Process;

// Instructions between two looks at the progress.
constexpr uint64_t kProgressInsns = 1'000'000;

// nullopt: the thread has retired `until` instructions.
Result<std::optional<std::string>> RunStep(Process& process, size_t thread,
                                           uint64_t until,
                                           ProgressSink* progress) {
  while (process.thread(thread).retired < until) {
    const uint64_t chunk =
        std::min(until, process.thread(thread).retired + kProgressInsns);
    CLEW_ASSIGN_OR_RETURN(advance, process.Run(thread, chunk));
    if (auto wrong = follower::WhyNotReached(process, thread, advance)) {
      return wrong;
    }
    if (progress != nullptr) {
      progress->Update(process.retired_total(), 0);
    }
  }
  return std::nullopt;
}

Result<std::optional<std::string>> RunSteps(follower::Session& session,
                                            Process& process,
                                            const Schedule& schedule,
                                            ProgressSink* progress) {
  for (const ScheduleStep& step : schedule.steps) {
    const auto thread = session.tape().IndexOf(step.thread);
    CLEW_CHECK(thread.has_value(), "CheckSteps let thread {} pass",
               step.thread);
    CLEW_ASSIGN_OR_RETURN(wrong,
                          RunStep(process, *thread, step.until_insn, progress));
    if (wrong) {
      return std::move(wrong);
    }
    const follower::ThreadState& state = process.thread(*thread);
    session.tape().Forget(*thread, state.block, state.input);
  }
  return std::nullopt;
}

}  // namespace

Result<EnforceReport> Enforce(const follower::Recording& recording,
                              const Schedule& schedule, OutputSink* output,
                              ProgressSink* progress) {
  CLEW_ASSIGN_OR_RETURN(session, follower::Session::Open(recording));
  CLEW_RETURN_IF_ERROR(CheckSteps(schedule.steps, session->tape()));
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
  CLEW_ASSIGN_OR_RETURN(wrong, RunSteps(*session, process, schedule, progress));
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
        static_cast<uint64_t>(step.kind),
        static_cast<uint64_t>(step.thread.as_int()), step.until_insn};
    digest = Digest(std::as_bytes(std::span(words)), digest);
  }
  return digest;
}

}  // namespace clew::replayer
