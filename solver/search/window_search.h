#ifndef CLEW_SOLVER_SEARCH_WINDOW_SEARCH_H_
#define CLEW_SOLVER_SEARCH_WINDOW_SEARCH_H_

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "common/inputs.h"
#include "common/progress.h"
#include "common/result.h"
#include "common/schedule.h"
#include "solver/search/conflict_search.h"
#include "solver/search/guess_run.h"

namespace clew::solver {

struct WindowSearchOptions {
  GuessRunOptions run;
  // How far before a contradiction the first window begins; doubled with each
  // further one.
  uint64_t first_back_insns = 10'000;
  // How far past a contradiction a window must come; doubled, up to the
  // maximum, where contradictions follow one another closely.
  uint64_t beyond_insns = 20'000;
  uint64_t beyond_insns_max = 40'000;
  // Steps of each search in the first window; doubled with each further one.
  uint64_t first_steps_max = 300'000;
  uint64_t seed = 1;
};

struct WindowSearchReport {
  bool found = false;
  std::vector<ScheduleStep> steps;
  bool guess_was_enough = false;
  uint64_t stretches = 0;       // that the guess ran
  uint64_t windows = 0;         // begun, learned and searched
  uint64_t search_steps = 0;    // ConflictSearchReport, over all searches
  uint64_t contradictions = 0;  // met by guess and searches
  uint64_t back_jumps = 0;
  uint64_t insns_run = 0;            // by the guess, and to learn
  follower::Contradiction furthest;  // the latest contradiction
  uint64_t furthest_insns = 0;       // of all threads, before it
  // Of all threads, when a stretch of the guess was cut off furthest.
  uint64_t followed_insns = 0;
  // The furthest contradiction is one of the guess, and there was no other
  // order up to it (RunOutcome::without_choice).
  bool without_choice = false;
};

// What a turn of a WindowSearch came to.
enum class WindowTurn {
  kWitness,  // WindowSearchReport::steps are it
  kNotYet,   // further turns go on
};

// Runs the guess, fast, until something contradicts it; searches a window
// around that place for an order that does not (ConflictSearch), and goes on
// with the guess after it. A window without an answer is followed by one that
// begins further back:
//
//     instructions of all threads -->
//
//     p0        p1      p2   p3  p4    points that the guess kept
//     |----- guess ----------------X        X: the contradiction
//                            |--W1----->|   goal: beyond_insns past X
//                       |-------W2----->|   twice as far back
//                                       |----- guess ---- ...
//
// The goal is past X because a state just after X may already be one from which
// nothing leads on. Of each window several variants of the search are run
// (kVariants), each with a limit of steps that grows with the window.
//
// Invariant: point_ can be reached from the start by steps that agree with all
// evidence before it; its history says by which.
//
// Worked example. Two threads add to a counter, 3,000,000 instructions in. At
// 3,000,500 a thread reads 8 where it was recorded to branch on 7. W1 begins at
// the last point 10,000 instructions or more before that; its search swaps the
// two additions and comes to 3,020,500 without a contradiction: the guess goes
// on there. Nothing before 2,990,500 was looked at again.
//
// Memory follows the window and the points kept, not the length of the
// recording.
//
// Of evidence that many steps have brought about together (a sum that a call is
// given), the last steps are not worth all their orders: one variant begins
// many short searches, each with another guess (Scatter).
//
// It never gives up by itself, and refutes nothing. Its turns fail as
// Process::Run does.
class WindowSearch {
 public:
  // `start` and `failure` are borrowed, and `progress`, which may be nullptr.
  WindowSearch(const follower::Process& start, const Failure& failure,
               uint64_t clock_slack_ticks, const WindowSearchOptions& options,
               ProgressSink* progress);
  WindowSearch(const WindowSearch&) = delete;
  WindowSearch& operator=(const WindowSearch&) = delete;

  // Runs the first stretch of the guess, for at most some `seconds`.
  [[nodiscard]] Result<WindowTurn> TryGuess(double seconds);
  // Goes on for some `seconds`; may be called again.
  [[nodiscard]] Result<WindowTurn> Run(double seconds);

  const WindowSearchReport& report() const { return report_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Variant {
    bool plain_alternatives = false;
    size_t conflict_steps = 2;
    uint64_t jitter_ticks = 0;
    bool keeps_order = false;
    bool probes = false;        // ends soon where a call contradicts
    bool is_brief = false;      // has a fraction of the steps
    bool scatters = false;      // many short searches
    bool takes_bursts = false;  // of which each is one step
  };
  static const std::span<const Variant> kVariants;

  // A contradiction of the guess, and how far the windows before it are.
  struct Obstacle {
    uint64_t at = 0;    // instructions retired by all
    uint64_t goal = 0;  // to be reached
    std::shared_ptr<RunPoint> from;
    uint64_t back = 0;
    uint64_t steps_max = 0;
    std::unique_ptr<WordTable> words;  // learned from `from` on; null: not yet
    std::deque<Variant> variants;      // of this window; the first is next
    uint64_t steps_left = 0;           // of that
    uint64_t scattered = 0;            // searches of it so far, if it scatters
    // The search that a deadline interrupted, and what report_ has of it.
    std::unique_ptr<ConflictSearch> search;
    ConflictSearchReport counted;
  };

  void SetDeadline(double seconds);
  Result<WindowTurn> RunGuess();
  void BeginObstacle(const RunOutcome& outcome);
  void BeginWindow(Obstacle& obstacle);
  Result<WindowTurn> SearchWindow(Obstacle& obstacle);
  void BeginVariant(Obstacle& obstacle) const;
  void EndVariant(Obstacle& obstacle, const ConflictSearchReport& found) const;
  void BeginSearch(Obstacle& obstacle);
  void Scatter(Obstacle& obstacle, ConflictSearchOptions& options) const;
  Result<WindowTurn> Search(Obstacle& obstacle);
  void Count(ConflictSearchReport& counted, const ConflictSearchReport& found);
  WindowTurn Finish(const RunPoint& last,
                    const std::vector<ScheduleStep>& steps);
  void NoteFurthest(const follower::Contradiction& why, uint64_t insns);

  const follower::Process& start_;
  const Failure& failure_;
  uint64_t slack_ticks_;
  WindowSearchOptions options_;
  ProgressSink* progress_;
  Clock::time_point deadline_;
  std::shared_ptr<RunPoint> point_;  // where the guess goes on
  std::unique_ptr<Obstacle> obstacle_;
  uint64_t beyond_insns_;
  uint64_t passed_ = 0;  // the last goal that was reached
  WindowSearchReport report_;
};

}  // namespace clew::solver

#endif  // CLEW_SOLVER_SEARCH_WINDOW_SEARCH_H_
