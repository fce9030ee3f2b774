#include "symbolic/constructive_search.h"

#include <algorithm>
#include <utility>

#include "solver/depth_first.h"
#include "symbolic/machine_executor.h"

namespace clew::symbolic {
namespace {

constexpr uint64_t kDeadStatesBytesMax = 512u << 20;
// Share of the remaining time that one round of a strategy may take.
constexpr double kRoundShare = 0.4;

struct Strategy {
  bool back_jumps;
  uint32_t holds_per_1000;
};
constexpr Strategy kStrategies[] = {
    {.back_jumps = false, .holds_per_1000 = 0},
    {.back_jumps = true, .holds_per_1000 = 0},
    {.back_jumps = true, .holds_per_1000 = 50},
    {.back_jumps = false, .holds_per_1000 = 100},
};

}  // namespace

Result<ConstructiveReport> ConstructiveSearch(const process::Process& start,
                                              const Failure& failure,
                                              uint64_t clock_slack_ticks,
                                              WordTable& words, uint64_t seed,
                                              double seconds) {
  const solver::Deadline deadline(seconds);
  ConstructiveReport report;
  while (!deadline.passed()) {
    const uint64_t known = words.contested_count();
    MachineExecutor executor(start, failure, clock_slack_ticks, words,
                             {.seed = seed, .grain_insns = 64});
    const auto origin = executor.SetMark();
    solver::DigestSet dead(kDeadStatesBytesMax);
    const Strategy& strategy =
        kStrategies[report.rounds % std::size(kStrategies)];
    const solver::Deadline round =
        deadline.Within(std::max(0.2, deadline.seconds_left() * kRoundShare));
    solver::DepthFirst search(executor, dead,
                              {.back_jumps = strategy.back_jumps,
                               .holds_per_1000 = strategy.holds_per_1000,
                               .seed = seed + report.rounds},
                              round);
    solver::SearchAnswer answer = search.Run();
    if (executor.error()) {
      return std::unexpected(*executor.error());
    }
    ++report.rounds;
    report.contested = known;
    report.stats.Add(answer.stats);
    report.deepest_contradiction = answer.deepest_contradiction;
    report.why = answer.why;
    if (answer.verdict == solver::Verdict::kWitness) {
      executor.RollBack(origin);
      report.steps = executor.ScheduleOf(answer.witness);
      report.verdict = answer.verdict;
      return report;
    }
    if (answer.verdict == solver::Verdict::kUnsat &&
        words.contested_count() == known && words.words_dropped() == 0) {
      report.verdict = answer.verdict;
      return report;
    }
  }
  return report;
}

}  // namespace clew::symbolic
