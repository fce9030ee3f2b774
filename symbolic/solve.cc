#include "symbolic/solve.h"

#include <chrono>
#include <utility>

#include "common/check.h"
#include "symbolic/check.h"

namespace clew::symbolic {
namespace {

using Clock = std::chrono::steady_clock;

WitnessGrade GradeOf(const CheckReport& check) {
  const bool memory_exact =
      check.memory.bytes_compared > 0 &&
      check.memory.bytes_equal == check.memory.bytes_compared;
  return memory_exact ? WitnessGrade::kMemoryExact : WitnessGrade::kPathExact;
}

std::string EngineOf(const GuidedSearchReport& search) {
  return search.guess_was_enough ? "guess" : "guided search";
}

}  // namespace

Result<SolveReport> Solve(const process::Recording& recording,
                          const SolveOptions& options, ProgressSink* progress) {
  const auto start = Clock::now();
  CLEW_ASSIGN_OR_RETURN(session, process::Session::Open(recording));
  SolveReport report;
  CLEW_ASSIGN_OR_RETURN(
      search,
      GuidedSearch(session->start(), recording.failure,
                   recording.clock_slack_ticks, options.search, progress));
  report.search = std::move(search);
  if (report.search.found) {
    CLEW_ASSIGN_OR_RETURN(
        check, CheckSchedule(recording, report.search.steps, progress));
    CLEW_CHECK(!check.disagreement, "the checker refuses the witness: {}",
               *check.disagreement);
    report.verdict = Verdict::kWitness;
    report.schedule = {.steps = report.search.steps,
                       .grade = GradeOf(check),
                       .engine = EngineOf(report.search),
                       .memory_bytes_compared = check.memory.bytes_compared,
                       .memory_bytes_equal = check.memory.bytes_equal,
                       .final_memory_digest = check.memory_digest};
    report.memory = std::move(check.memory);
    report.insns = check.insns;
  } else {
    report.reason = report.search.reason;
  }
  report.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return report;
}

}  // namespace clew::symbolic
