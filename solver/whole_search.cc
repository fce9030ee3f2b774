#include "solver/whole_search.h"

#include <utility>

#include "common/os/deadline.h"
#include "constraints/verdict.h"
#include "solver/order_edges.h"
#include "solver/search/machine_executor.h"
#include "symbolic/trace_builder.h"

namespace clew::solver {
namespace {

using constraints::Verdict;
using symbolic::BuildTrace;
using symbolic::BuiltTrace;

// Beyond this many contested instructions no formula is made.
constexpr uint64_t kFormulaContestedMax = 20'000;

}  // namespace

Result<WholeSearchReport> SearchWhole(const follower::Process& start,
                                      const Failure& failure,
                                      uint64_t clock_slack_ticks,
                                      WordTable& words, Cuts& cuts,
                                      PortfolioOptions options) {
  const Deadline deadline(options.seconds);
  WholeSearchReport report;
  while (!deadline.passed()) {
    const uint64_t known = words.learned();
    report.contested = words.contested_count();
    report.cuts = cuts.count();
    MachineExecutor executor(start, failure, clock_slack_ticks, words, cuts,
                             {.seed = options.seed, .grain_insns = 64});
    const auto origin = executor.SetMark();
    options.seconds = deadline.seconds_left();
    constraints::ExprPool pool;
    BuiltTrace built;
    const TraceProvider provider =
        [&]() -> Result<constraints::ConstraintTrace> {
      CLEW_ASSIGN_OR_RETURN(trace,
                            BuildTrace(start, words.ContestedWords(), pool,
                                       {.clock_slack_ticks = clock_slack_ticks,
                                        .deadline = deadline.time()}));
      built = std::move(trace);
      return built.trace;
    };
    // A formula knows sequential consistency alone.
    const bool small =
        report.contested <= kFormulaContestedMax && start.queues() == 0;
    CLEW_ASSIGN_OR_RETURN(
        answer,
        RunPortfolio(executor, small ? provider : TraceProvider(), options));
    if (const auto& error = executor.error()) {
      return std::unexpected(*error);
    }
    ++report.rounds;
    ++options.seed;
    report.answer = std::move(answer);
    if (report.answer.verdict == Verdict::kWitness) {
      if (report.answer.accesses) {
        report.edges = EdgesOf(built, *report.answer.accesses);
        return report;
      }
      executor.RollBack(origin);
      report.steps = executor.ScheduleOf(report.answer.steps);
      return report;
    }
    const bool refuted = report.answer.verdict == Verdict::kUnsat;
    const bool learned = words.learned() != known;
    report.exhausted = refuted && !learned && executor.exposed().count() == 0;
    if (report.exhausted && words.accesses_dropped() == 0) {
      return report;
    }
    report.answer.verdict = Verdict::kUnknown;
    if (report.exhausted || (!refuted && !learned)) {
      return report;
    }
    if (refuted) {
      report.answer.why = "more accesses turned out to be contested";
      cuts.Add(executor.exposed());
    }
  }
  return report;
}

}  // namespace clew::solver
