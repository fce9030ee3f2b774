#include "solver/check.h"

#include <algorithm>

#include "follower/order_rules.h"
#include "follower/verdict.h"

namespace clew::solver {
namespace {

using follower::Process;

// One step, block by block, so that time and core order are checked for each.
Result<std::optional<std::string>> RunStep(Process& process,
                                           follower::OrderRules& rules,
                                           size_t thread, uint64_t until) {
  while (process.thread(thread).retired < until) {
    CLEW_ASSIGN_OR_RETURN(permitted, rules.Permits(process, thread));
    const follower::ThreadState& state = process.thread(thread);
    if (!permitted) {
      return fmt::format(
          "thread {} after {} instructions: the schedule runs it against the "
          "order of time or core, or past its end",
          process.tid(thread), state.retired);
    }
    CLEW_ASSIGN_OR_RETURN(block, process.NextBlock(thread));
    const uint64_t block_end =
        state.retired + block->insn_count - state.block_done;
    CLEW_ASSIGN_OR_RETURN(advance,
                          process.Run(thread, std::min(until, block_end)));
    if (auto wrong = follower::WhyNotReached(process, thread, advance)) {
      return wrong;
    }
  }
  return std::nullopt;
}

}  // namespace

bool AgreesWithCore(const CheckReport& report) {
  return report.memory.bytes_compared > 0 &&
         report.memory.bytes_equal == report.memory.bytes_compared &&
         report.registers.equal == report.registers.compared;
}

Result<CheckReport> CheckSchedule(const follower::Recording& recording,
                                  const std::vector<ScheduleStep>& steps,
                                  ProgressSink* progress) {
  CLEW_ASSIGN_OR_RETURN(session, follower::Session::Open(recording));
  Process process = session->start();
  process.mutable_memory().EnableDigest();
  follower::OrderRules rules(process, recording.clock_slack_ticks);
  CheckReport report;
  for (const ScheduleStep& step : steps) {
    const auto thread = session->tape().IndexOf(step.thread);
    if (!thread || step.kind != ScheduleStep::Kind::kRun) {
      report.disagreement = fmt::format(
          "the schedule has a step of thread {}, which has no stream, or of a "
          "kind that sequential consistency does not know",
          step.thread);
      return report;
    }
    CLEW_ASSIGN_OR_RETURN(wrong,
                          RunStep(process, rules, *thread, step.until_insn));
    if (wrong) {
      report.disagreement = std::move(*wrong);
      return report;
    }
    const follower::ThreadState& state = process.thread(*thread);
    session->tape().Forget(*thread, state.block, state.input);
    if (progress != nullptr) {
      progress->Update(process.retired_total(), 0);
    }
  }
  CLEW_ASSIGN_OR_RETURN(wrong, follower::CheckEnd(process, recording.failure));
  report.disagreement = std::move(wrong);
  // After the failing instruction: a REP that faults has made iterations.
  report.registers =
      follower::CompareRegisters(process, recording.core_registers);
  report.memory = follower::CompareMemory(process.memory(), recording.core);
  report.memory_digest = process.memory().digest();
  report.outputs_differing = process.outputs_differing();
  report.insns = process.retired_total();
  return report;
}

}  // namespace clew::solver
