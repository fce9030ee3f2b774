#include "solver/check.h"

#include "common/check.h"
#include "follower/describe_run.h"
#include "follower/order_rules.h"
#include "follower/run_schedule.h"

namespace clew::solver {
namespace {

Result<CheckReport> Check(const follower::Recording& recording,
                          follower::Process process,
                          const std::vector<ScheduleStep>& steps,
                          ProgressSink* progress) {
  process.mutable_memory().EnableDigest();
  follower::OrderRules rules(process, recording.clock_slack_ticks);
  CheckReport report;
  CLEW_ASSIGN_OR_RETURN(
      left, follower::RunSchedule(process, steps,
                                  {.rules = &rules, .progress = progress}));
  report.insns = process.retired_total();
  if (left) {
    report.disagreement = std::move(left);
    return report;
  }
  CLEW_ASSIGN_OR_RETURN(wrong, follower::CheckEnd(process, recording.failure));
  report.disagreement = std::move(wrong);
  // After the failing instruction: a REP that faults has made iterations.
  report.registers =
      follower::CompareRegisters(process, recording.dumped_registers);
  report.memory =
      follower::CompareMemory(process.memory(), recording.core_dump);
  report.memory_digest = process.memory().digest();
  report.outputs_differing = process.outputs_differing();
  return report;
}

}  // namespace

bool AgreesWithCoreDump(const CheckReport& report) {
  return report.memory.bytes_compared > 0 &&
         report.memory.bytes_equal == report.memory.bytes_compared &&
         report.registers.equal == report.registers.compared;
}

Result<CheckReport> CheckSchedule(const follower::Recording& recording,
                                  const std::vector<ScheduleStep>& steps,
                                  ProgressSink* progress) {
  CLEW_ASSIGN_OR_RETURN(session, follower::OpenedRecording::Open(recording));
  return Check(recording, session->start(), steps, progress);
}

Result<CheckReport> CheckOnlyThread(const follower::Recording& recording,
                                    std::vector<ScheduleStep>& steps,
                                    ProgressSink* progress) {
  CLEW_ASSIGN_OR_RETURN(session, follower::OpenedRecording::Open(recording));
  const follower::Process& start = session->start();
  CLEW_CHECK(start.thread_count() == 1, "{} threads have streams",
             start.thread_count());
  steps = {{.thread = start.tid(0), .until_insn = follower::kToItsEnd}};
  CLEW_ASSIGN_OR_RETURN(report, Check(recording, start, steps, progress));
  steps.front().until_insn = report.insns;
  return report;
}

}  // namespace clew::solver
