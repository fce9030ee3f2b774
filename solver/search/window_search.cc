#include "solver/search/window_search.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "common/digest.h"

namespace clew::solver {
namespace {

constexpr uint64_t kLearnAheadInsns = 32'000;  // some timing windows
// Steps of a search for each instruction up to the goal.
constexpr uint64_t kInsnsPerStep = 8;
// Of a search that comes to a call which is given other than recorded.
constexpr uint64_t kProbeStepsMax = 10'000;
// So many times the steps of another variant.
constexpr uint64_t kScatteredTurns = 3;
// One of so many steps of another variant, if it is brief.
constexpr uint64_t kBriefShare = 10;
// Of a search that is scattered, besides two for each contested instruction.
constexpr uint64_t kScatteredStepsMin = 250;

// Of the sequence 1, 1, 2, 1, 1, 2, 4, 1, 1, 2, 1, 1, 2, 4, 8, ... the number
// at `index`, from 0 (Luby, Sinclair, Zuckerman, "Optimal speedup of Las Vegas
// algorithms", 1993).
uint64_t Luby(uint64_t index) {
  uint64_t number = index + 1;
  while (!std::has_single_bit(number + 1)) {
    number -= std::bit_floor(number) - 1;
  }
  return (number + 1) / 2;
}

// Of any magnitude from `least` to `least` * 2^doublings.
uint64_t OfAnyMagnitude(Random& random, uint64_t least, uint64_t doublings) {
  const uint64_t magnitude = least << random.Below(doublings);
  return magnitude + random.Below(magnitude);
}

}  // namespace

// None of them is best everywhere: copies of many words are settled by taking
// each at once, locks mostly by trying other threads, data behind locks by
// letting the held thread go first, and what many steps have brought about
// together by beginning anew. The last one does where those that probe did not
// find that this is what is wanted.
const std::span<const WindowSearch::Variant> WindowSearch::kVariants = [] {
  static constexpr Variant kAll[] = {
      {.plain_alternatives = true, .probes = true, .is_brief = true},
      {.plain_alternatives = true,
       .is_brief = true,
       .scatters = true,
       .takes_bursts = true},
      {.plain_alternatives = true, .probes = true},
      {.plain_alternatives = true, .keeps_order = true},
      {},
      {.plain_alternatives = true, .conflict_steps = 8},
      {.plain_alternatives = true, .jitter_ticks = 512},
      {.conflict_steps = 4, .jitter_ticks = 2048},
      {.plain_alternatives = true, .scatters = true},
  };
  return std::span<const Variant>(kAll);
}();

WindowSearch::WindowSearch(const follower::Process& start,
                           const Failure& failure, uint64_t clock_slack_ticks,
                           const WindowSearchOptions& options,
                           ProgressSink* progress)
    : start_(start),
      failure_(failure),
      slack_ticks_(clock_slack_ticks),
      options_(options),
      progress_(progress),
      point_(FirstPoint(start, clock_slack_ticks, {.seed = options.seed})),
      beyond_insns_(options.beyond_insns) {}

Result<WindowTurn> WindowSearch::TryGuess(double seconds) {
  SetDeadline(seconds);
  CLEW_ASSIGN_OR_RETURN(turn, RunGuess());
  report_.guess_was_enough = turn == WindowTurn::kWitness;
  return turn;
}

void WindowSearch::SetDeadline(double seconds) {
  deadline_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                 std::chrono::duration<double>(seconds));
}

Result<WindowTurn> WindowSearch::Run(double seconds) {
  SetDeadline(seconds);
  WindowTurn turn = report_.found ? WindowTurn::kWitness : WindowTurn::kNotYet;
  while (turn == WindowTurn::kNotYet && Clock::now() < deadline_) {
    CLEW_ASSIGN_OR_RETURN(next,
                          obstacle_ ? SearchWindow(*obstacle_) : RunGuess());
    turn = next;
  }
  return turn;
}

Result<WindowTurn> WindowSearch::RunGuess() {
  GuessRunOptions options = options_.run;
  options.deadline = deadline_;
  GuessRunner runner(failure_, nullptr, options, progress_);
  ++report_.stretches;
  CLEW_ASSIGN_OR_RETURN(outcome, runner.Run(point_));
  report_.insns_run += runner.insns_run();
  if (outcome.end == RunOutcome::End::kWitness) {
    return Finish(*outcome.last, outcome.steps);
  }
  if (outcome.end == RunOutcome::End::kCutOff) {
    point_ = outcome.last;
    report_.followed_insns =
        std::max(report_.followed_insns, outcome.retired_total);
    return WindowTurn::kNotYet;
  }
  ++report_.contradictions;
  NoteFurthest(outcome.contradiction, outcome.retired_total);
  report_.without_choice = outcome.without_choice;
  BeginObstacle(outcome);
  return WindowTurn::kNotYet;
}

// Begins an obstacle. One that is met soon behind the last goal suggests that
// the search came past that one into a state that nothing leads on from, so
// this window has to reach further.
void WindowSearch::BeginObstacle(const RunOutcome& outcome) {
  const uint64_t at = outcome.retired_total;
  const bool close = at < passed_ + 2 * beyond_insns_;
  beyond_insns_ = close ? std::min(2 * beyond_insns_, options_.beyond_insns_max)
                        : options_.beyond_insns;
  obstacle_ =
      std::make_unique<Obstacle>(Obstacle{.at = at,
                                          .goal = at + beyond_insns_,
                                          .from = outcome.last,
                                          .back = options_.first_back_insns,
                                          .steps_max = options_.first_steps_max,
                                          .words = nullptr,
                                          .variants = {},
                                          .search = nullptr,
                                          .counted = {}});
}

// Goes back to a point that is early enough, or to the first one, and learns
// what is contested from there on. Learns beyond the goal, because the search
// needs to know the next contested instruction of each thread when it is there.
void WindowSearch::BeginWindow(Obstacle& obstacle) {
  auto& from = obstacle.from;
  while (from->previous != nullptr &&
         obstacle.at - from->process.retired_total() < obstacle.back) {
    from = from->previous;
  }
  ++report_.windows;
  obstacle.variants.assign(kVariants.begin(), kVariants.end());
  BeginVariant(obstacle);
  obstacle.words =
      std::make_unique<WordTable>(start_.thread_count(), slack_ticks_);
  report_.insns_run +=
      LearnAlongPaths(
          *from,
          obstacle.goal - from->process.retired_total() + kLearnAheadInsns,
          failure_, *obstacle.words, progress_)
          .insns_run;
}

// One search of the window; the next window after the last one.
Result<WindowTurn> WindowSearch::SearchWindow(Obstacle& obstacle) {
  if (obstacle.search) {
    return Search(obstacle);
  }
  if (!obstacle.words) {
    BeginWindow(obstacle);
  } else if (obstacle.variants.empty()) {
    obstacle.back *= 2;
    obstacle.steps_max *= 2;
    BeginWindow(obstacle);
  }
  BeginSearch(obstacle);
  return Search(obstacle);
}

void WindowSearch::BeginVariant(Obstacle& obstacle) const {
  obstacle.scattered = 0;
  obstacle.steps_left =
      obstacle.steps_max +
      (obstacle.goal - obstacle.from->process.retired_total()) / kInsnsPerStep;
  if (obstacle.variants.front().is_brief) {
    obstacle.steps_left /= kBriefShare;
  } else if (obstacle.variants.front().scatters) {
    obstacle.steps_left *= kScatteredTurns;
  }
}

// The next variant, or the next search of one that scatters.
void WindowSearch::EndVariant(Obstacle& obstacle,
                              const ConflictSearchReport& found) const {
  auto& variants = obstacle.variants;
  const Variant ended = variants.front();
  // To begin a search costs something, too.
  const uint64_t spent = std::max(found.steps, kScatteredStepsMin / 8);
  if (ended.scatters && spent < obstacle.steps_left) {
    obstacle.steps_left -= spent;
    return;
  }
  variants.pop_front();
  if (ended.probes && !variants.empty() && variants.back().scatters &&
      found.furthest.kind == follower::Contradiction::Kind::kSyscall) {
    variants.push_front(ended);
    variants.front().probes = false;
    variants.push_front(variants.back());
    variants.pop_back();
  }
  if (!variants.empty()) {
    BeginVariant(obstacle);
  }
}

void WindowSearch::BeginSearch(Obstacle& obstacle) {
  const RunPoint& from = *obstacle.from;
  const Variant& variant = obstacle.variants.front();
  ConflictSearchOptions options;
  options.goal_retired = obstacle.goal;
  options.steps_max = obstacle.steps_left;
  options.plain_alternatives = variant.plain_alternatives;
  options.conflict_steps = variant.conflict_steps;
  options.jitter_ticks = variant.jitter_ticks;
  options.keeps_order = variant.keeps_order;
  // Differs from search to search, without a clock or chance.
  options.seed = options_.seed ^ MixBits(report_.search_steps);
  if (variant.probes) {
    options.refused_steps_max = kProbeStepsMax;
  }
  if (variant.scatters) {
    Scatter(obstacle, options);
  }
  obstacle.search = std::make_unique<ConflictSearch>(
      from.process, from.rules, from.guess, failure_, *obstacle.words, options);
  obstacle.counted = {};
}

// Many short searches, each of another guess: where the evidence is what many
// steps have brought about together (a sum that is written out), to try the
// last ones otherwise does not help, and nearly every guess is as good as
// another. With bursts, how far their instructions are apart is a guess, too,
// and every second search is of the guess as it is.
void WindowSearch::Scatter(Obstacle& obstacle,
                           ConflictSearchOptions& options) const {
  const bool takes_bursts = obstacle.variants.front().takes_bursts;
  const bool spreads = !takes_bursts || obstacle.scattered % 2 == 1;
  const uint64_t base =
      kScatteredStepsMin + 2 * obstacle.words->contested_count();
  options.steps_max =
      std::min(options.steps_max, base * Luby(obstacle.scattered++));
  Random random(options.seed);
  if (takes_bursts) {
    options.burst_gap_insns = OfAnyMagnitude(random, 8, 6);
  }
  if (spreads) {
    options.jitter_ticks = OfAnyMagnitude(random, 64, 7);
    options.jitter_insns = OfAnyMagnitude(random, 4, 8);
  }
}

Result<WindowTurn> WindowSearch::Search(Obstacle& obstacle) {
  CLEW_ASSIGN_OR_RETURN(found, obstacle.search->Run(deadline_));
  Count(obstacle.counted, found);
  if (found.end == ConflictSearchReport::End::kDeadline) {
    return WindowTurn::kNotYet;
  }
  if (found.end == ConflictSearchReport::End::kRefuted ||
      found.end == ConflictSearchReport::End::kLimit) {
    // Refuted says only that this variant has nothing left to try: the next
    // variant, or a window that begins earlier, may.
    obstacle.search.reset();
    EndVariant(obstacle, found);
    return WindowTurn::kNotYet;
  }
  // The new points are linked to the window's first, so that a later window can
  // begin anywhere before, also inside this one.
  point_ = obstacle.search->TakePoints(obstacle.from);
  passed_ = point_->process.retired_total();
  obstacle_.reset();
  return found.end == ConflictSearchReport::End::kWitness ? Finish(*point_, {})
                                                          : WindowTurn::kNotYet;
}

void WindowSearch::Count(ConflictSearchReport& counted,
                         const ConflictSearchReport& found) {
  report_.search_steps += found.steps - counted.steps;
  report_.contradictions += found.contradictions - counted.contradictions;
  report_.back_jumps += found.back_jumps - counted.back_jumps;
  counted = found;
  NoteFurthest(found.furthest, found.furthest_retired);
  if (progress_ != nullptr) {
    progress_->Update(report_.furthest_insns, 0);
  }
}

WindowTurn WindowSearch::Finish(const RunPoint& last,
                                const std::vector<ScheduleStep>& steps) {
  report_.steps = CollectSteps(last, steps);
  report_.found = true;
  return WindowTurn::kWitness;
}

void WindowSearch::NoteFurthest(const follower::Contradiction& why,
                                uint64_t insns) {
  if (insns >= report_.furthest_insns) {
    report_.furthest = why;
    report_.furthest_insns = insns;
  }
}

}  // namespace clew::solver
