#include "symbolic/constructive_search.h"

#include <utility>

#include "symbolic/machine_executor.h"

namespace clew::symbolic {

Result<ConstructiveReport> ConstructiveSearch(const process::Process& start,
                                              const Failure& failure,
                                              uint64_t clock_slack_ticks,
                                              WordTable& words,
                                              solver::SolveOptions options) {
  const solver::Deadline deadline(options.seconds);
  ConstructiveReport report;
  while (!deadline.passed()) {
    const uint64_t known = words.contested_count();
    MachineExecutor executor(start, failure, clock_slack_ticks, words,
                             {.seed = options.seed, .grain_insns = 64});
    const auto origin = executor.SetMark();
    options.seconds = deadline.seconds_left();
    CLEW_ASSIGN_OR_RETURN(answer, solver::Solve(executor, {}, options));
    if (executor.error()) {
      return std::unexpected(*executor.error());
    }
    ++report.rounds;
    ++options.seed;
    report.contested = known;
    report.answer = std::move(answer);
    if (report.answer.verdict == solver::Verdict::kWitness) {
      executor.RollBack(origin);
      report.steps = executor.ScheduleOf(report.answer.steps);
      return report;
    }
    const bool learned = words.contested_count() != known;
    if (!learned && words.words_dropped() == 0) {
      return report;
    }
    if (report.answer.verdict == solver::Verdict::kUnsat) {
      report.answer.verdict = solver::Verdict::kUnknown;
      report.answer.why = "more accesses turned out to be contested";
    }
  }
  return report;
}

}  // namespace clew::symbolic
