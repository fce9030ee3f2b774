#ifndef CLEW_SOLVER_SEARCH_GUESS_RUN_H_
#define CLEW_SOLVER_SEARCH_GUESS_RUN_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "common/inputs.h"
#include "common/progress.h"
#include "common/result.h"
#include "common/schedule.h"
#include "follower/guess.h"
#include "follower/order_rules.h"
#include "follower/process.h"
#include "solver/search/edges.h"
#include "solver/search/word_table.h"

namespace clew::solver {

// The schedule up to a point, shared by all runs that go on from there.
struct RunHistory {
  std::vector<ScheduleStep> steps;  // since `previous`
  std::shared_ptr<RunHistory> previous;

  RunHistory(std::vector<ScheduleStep> steps_since,
             std::shared_ptr<RunHistory> before)
      : steps(std::move(steps_since)), previous(std::move(before)) {}
  RunHistory(const RunHistory&) = delete;
  RunHistory& operator=(const RunHistory&) = delete;
  ~RunHistory();  // not recursive: there are as many as points were
};

// A point of a run to go back to. Points form a tree: a run that was tried
// differently from some point on shares what came before. The further back, the
// fewer are kept.
struct RunPoint {
  follower::Process process;
  follower::OrderRules rules;
  follower::Guess guess;
  std::shared_ptr<RunHistory> history;
  // nullptr at the beginning, or if nothing before is kept (keep_insns).
  std::shared_ptr<RunPoint> previous;
};

// Returns the first point of a recording.
std::shared_ptr<RunPoint> FirstPoint(const follower::Process& start,
                                     uint64_t clock_slack_ticks,
                                     follower::GuessOptions options);

struct RunOutcome {
  enum class End : uint8_t {
    kWitness,        // every stream ended and the failure agrees
    kContradiction,  // `contradiction` says what
    kStuck,          // no thread may go on, by edges, time or futexes
    kCutOff,         // GuessRunOptions::insns_max or the deadline
  };
  End end = End::kStuck;
  follower::Contradiction contradiction;
  std::shared_ptr<RunPoint> last;   // the last point before the end
  std::vector<ScheduleStep> steps;  // since `last`
  uint64_t retired_total = 0;
  bool all_ended = false;  // every stream
  // kContradiction, kStuck: only one thread was created so far, so that no
  // other order of what happened up to here exists.
  bool without_choice = false;
};

struct GuessRunOptions {
  // Instructions between two points at the end of a run. Further back, points
  // are an eighth of their distance apart.
  uint64_t point_insns = 50'000;
  // Points further back than this are given up, and the tape before them:
  // memory does not grow with the run's length.
  uint64_t keep_insns = 40'000'000;
  // The run is cut off after this many instructions, or soon after the
  // deadline.
  uint64_t insns_max = ~uint64_t{0};
  std::chrono::steady_clock::time_point deadline =
      std::chrono::steady_clock::time_point::max();
};

// Runs the guess until something contradicts it.
class GuessRunner {
 public:
  // All borrowed; they must outlive the runner. `words` learns what the run
  // accesses; if it is nullptr, nothing is learned, and the run is several
  // times as fast.
  GuessRunner(const Failure& failure, WordTable* words, GuessRunOptions options,
              ProgressSink* progress);

  // Goes on from `from` (which stays as it is), in an order that keeps `edges`.
  // Fails as Process::Run and CheckFailure do.
  [[nodiscard]] Result<RunOutcome> Run(std::shared_ptr<RunPoint> from,
                                       std::span<const OrderEdge> edges = {});

  uint64_t insns_run() const { return insns_run_; }

 private:
  const Failure& failure_;
  WordTable* words_;
  GuessRunOptions options_;
  ProgressSink* progress_;
  uint64_t insns_run_ = 0;
};

// Follows the recorded paths from `from` on by force, for at most `insns_max`
// instructions and, about, until the deadline. Does so twice: a word shows to
// be shared only when a second thread comes to it; the second time this is
// known for the first thread, too. Nothing is learned past the end of the
// forced path.
struct LearnReport {
  uint64_t insns_run = 0;
  bool to_the_end = false;  // of the recording
};
LearnReport LearnAlongPaths(const RunPoint& from, uint64_t insns_max,
                            const Failure& failure, WordTable& words,
                            ProgressSink* progress,
                            std::chrono::steady_clock::time_point deadline =
                                std::chrono::steady_clock::time_point::max());

// Returns all steps from the beginning: those up to `last`, and `steps`. Merges
// neighbours of one thread.
std::vector<ScheduleStep> CollectSteps(const RunPoint& last,
                                       const std::vector<ScheduleStep>& steps);

}  // namespace clew::solver

#endif  // CLEW_SOLVER_SEARCH_GUESS_RUN_H_
