#ifndef CLEW_SOLVER_SEARCH_CONFLICT_SEARCH_H_
#define CLEW_SOLVER_SEARCH_CONFLICT_SEARCH_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/inputs.h"
#include "common/result.h"
#include "common/schedule.h"
#include "follower/guess.h"
#include "follower/order_rules.h"
#include "follower/process.h"
#include "solver/search/access_watcher.h"
#include "solver/search/bursts.h"
#include "solver/search/guess_run.h"
#include "solver/search/word_set.h"
#include "solver/search/word_table.h"

namespace clew::solver {

struct ConflictSearchOptions {
  // Reached once this many instructions have retired in all and no thread is
  // held.
  uint64_t goal_retired = ~uint64_t{0};
  uint64_t steps_max = 100'000;
  // Steps with one system call, other than recorded, as the furthest
  // contradiction.
  uint64_t refused_steps_max = ~uint64_t{0};
  // Into the conflict set of a contradiction goes what the thread read in its
  // last so many steps. More miss fewer causes and cost more.
  size_t conflict_steps = 2;
  // Where the search goes back to, it tries the other threads one by one;
  // otherwise it lets those that were held go first, by decision.
  bool plain_alternatives = false;
  // Steps that were taken before are taken in the order in which they were
  // taken last, not as the guess has them: what was settled after the place
  // that the search goes back to stays settled.
  bool keeps_order = false;
  // Spreads the guess by up to so many ticks; 0: the guess as it is. The same
  // for so many instructions of a thread in a row.
  uint64_t jitter_ticks = 0;
  uint64_t jitter_insns = 256;
  // Contested instructions that are no further apart are taken in one step, as
  // long as their burst is not split (solver/search/bursts.h); 0: each alone.
  uint64_t burst_gap_insns = 0;
  uint64_t seed = 1;
  // The first point that TakePoints takes before the end is so many
  // instructions away from it.
  uint64_t first_point_back = 10'000;
};

struct ConflictSearchReport {
  enum class End : uint8_t {
    kReached,
    kWitness,   // every stream ended and the failure agrees
    kRefuted,   // no order of contested accesses that it knows fits
    kLimit,     // steps_max or refused_steps_max
    kDeadline,  // Run may be called again
  };
  End end = End::kLimit;
  uint64_t steps = 0;
  uint64_t contradictions = 0;
  uint64_t back_jumps = 0;
  uint64_t furthest_retired = 0;
  follower::Contradiction furthest;  // the contradiction met there
};

// Depth-first search over the order of contested instructions, on the machine,
// from one state on, with conflict-directed backjumping (Prosser, "Hybrid
// algorithms for the constraint satisfaction problem", 1993).
//
// A step runs a thread through its next contested instruction, or burst of
// them, and on to the one after, or a thousand further. Each thread whose turn
// it is, by the guess, takes one:
//
//   - a step that contradicts the evidence is taken back, and its thread is
//     *held* until another thread writes a word that the step read;
//   - where no thread may go on, the words that the held threads read, in that
//     step and the conflict_steps before it, are the *conflict set*. The search
//     unwinds to the latest step that touched one of them. Steps that it
//     unwinds on the way are not tried in other orders;
//   - there it makes a *decision*: that step's thread waits until the held
//     thread's step has retired. With plain_alternatives it tries the other
//     threads one by one instead.
//
// Where bursts are split for the furthest contradiction, the search unwinds to
// the first step that was longer than it is now, and forgets which states were
// dead: by shorter steps there may be a way on.
//
// Invariants: every step of the path agrees with the evidence; a state in
// `dead_` was left with nothing to try, and the conflict set that it was left
// with stands beside it.
//
// Worked example. x is 0. A runs x = 1; x = 2. B runs r = x and was recorded to
// take a branch that wants r == 1. C writes y.
//
//     guess     A: x = 1 --> A: x = 2 --> C: y = 7 --> B: r = 2, contradiction
//               node 0       node 1       node 2       B is held for {x}
//     dead end  conflict set {x}; node 2 touched only y: it is jumped over
//     node 1    decision: A waits before x = 2 until B has read x
//     then      A: x = 1 --> C: y = 7 --> B: r = 1 --> A: x = 2     witness
//
// Not complete: a conflict set follows words, and values only as far back as
// conflict_steps; of the decisions at a node some are tried.
class ConflictSearch final : private AccessWatcher {
 public:
  // All borrowed. `words` must know what is contested ahead.
  ConflictSearch(const follower::Process& start,
                 const follower::OrderRules& rules,
                 const follower::Guess& guess, const Failure& failure,
                 WordTable& words, const ConflictSearchOptions& options);
  ConflictSearch(const ConflictSearch&) = delete;
  ConflictSearch& operator=(const ConflictSearch&) = delete;

  using Clock = std::chrono::steady_clock;
  // Searches until an end or, about, the deadline. The report is of all calls
  // so far. Fails as Process::Run does.
  [[nodiscard]] Result<ConflictSearchReport> Run(
      Clock::time_point deadline = Clock::time_point::max());

  // Returns where the search is, as a point after `from`, which is where it
  // started, with points at growing distances between them. REQUIRES: Run ended
  // with kReached or kWitness, and this is the first call.
  std::shared_ptr<RunPoint> TakePoints(std::shared_ptr<RunPoint> from);

 private:
  // A thread that would contradict the evidence.
  struct Held {
    InsnRef at;     // where the step began that was taken back
    WordSet words;  // shared ones that it read
    WordSet conflict_words;
  };
  // `waits` is blocked until `first` has retired or, if both are of the same
  // thread, until another thread has written one of `words`.
  struct Decision {
    InsnRef waits;
    InsnRef first;
    WordSet words;
    size_t node = 0;  // where it was made
  };
  // The conflict set of a dead end.
  struct Conflict {
    WordSet words;
    std::vector<Held> held;  // the threads that were, latest first
    void Add(const Conflict& other);
  };

  // A state from which a step was taken.
  struct Node {
    follower::Process::Mark mark = 0;
    follower::OrderRules::Progress progress;
    std::shared_ptr<const std::vector<Held>> held;
    std::shared_ptr<const std::vector<Decision>> decisions;
    size_t accesses = 0;          // of the log, before it
    uint64_t retired = 0;         // by `thread`, before the step
    uint64_t retired_total = 0;   // by all
    uint32_t thread = 0;          // who took the step
    double key = 0;               // when, as a guess; grows along the path
    bool decided = false;         // the step was taken under a new decision
    std::vector<uint32_t> tried;  // threads whose subtrees are refuted
    std::vector<Decision> pending;
    size_t made = 0;  // decisions tried and pending
    Conflict conflict;
  };
  enum class StepEnd : uint8_t { kDone, kHeld, kUnwound };
  // What came of trying to go on from a state.
  enum class Outcome : uint8_t {
    kWentOn,   // a step was taken, or a limit ended the attempt
    kWitness,  // every stream has ended, and the failure agrees
    kNothing,  // every choice contradicts
    kUnwound,  // bursts were split: the path is shorter than it was
  };

  void OnSharedWord(const WordAccess& access) override;

  Result<Outcome> GoOn();
  void Push(Node node);
  Result<Outcome> TryFrom(Node& node);
  Result<std::optional<uint32_t>> Pick(const Node& node);
  Result<StepEnd> Step(Node& node, uint32_t thread);
  Result<StepEnd> RunStep(uint32_t thread);
  void Hold(Node& node, uint32_t thread);
  void Release(uint32_t writer, size_t accesses);
  void Conclude(uint32_t writer, size_t accesses);
  void Restore(Node& node);
  void Remember(const Conflict& conflict);
  Result<Outcome> GoBack(Conflict conflict);
  Result<Outcome> TryOtherwise(Node& node);
  void Decide(Node& node, const Conflict& conflict);
  bool Touches(const Node& node, const WordSet& words) const;
  bool Wrote(size_t accesses, const WordSet& words) const;
  Conflict DeadEnd(const Node& node) const;
  Conflict WhyNot(const Node& node);
  WordSet Overtaken(const Held& held) const;
  bool WroteWord(size_t accesses, uint64_t word) const;
  std::pair<size_t, size_t> AccessesOf(size_t node) const;
  uint64_t DigestNow() const;
  void AddReadsOf(uint32_t thread, WordSet& words) const;
  Result<bool> IsAtEnd(Node& node);
  bool MustWait(uint32_t thread) const;
  bool SplitBurstsFor(InsnRef why);
  void UnwindTo(size_t node);
  uint64_t EndOfStep(size_t node) const;
  void NoteFurthest(const follower::Contradiction& why);
  bool AtLimit() const;
  bool OutOfBudget();
  Result<double> KeyOf(uint32_t thread);
  std::vector<ScheduleStep> StepsFrom(size_t node) const;

  const Failure& failure_;
  WordTable& table_;
  ConflictSearchOptions options_;
  follower::Process process_;
  follower::OrderRules rules_;
  follower::Guess guess_;
  std::vector<Node> nodes_;
  std::vector<WordAccess> accesses_;           // to shared words
  std::vector<std::vector<size_t>> nodes_of_;  // by thread
  // By thread and instruction where a step began: when it was taken last.
  std::vector<std::unordered_map<uint64_t, double>> taken_;
  Bursts bursts_;
  std::shared_ptr<const std::vector<Held>> held_;
  std::shared_ptr<const std::vector<Decision>> decisions_;
  std::unordered_map<uint64_t, Conflict> dead_;
  // Why the latest step contradicted, if waiting would not help; set until the
  // search has gone back.
  std::optional<Conflict> overtaken_;
  ConflictSearchReport report_;
  Clock::time_point deadline_;
  uint64_t budget_checks_ = 0;
  uint64_t furthest_since_steps_ = 0;  // report_.furthest is at that place
};

}  // namespace clew::solver

#endif  // CLEW_SOLVER_SEARCH_CONFLICT_SEARCH_H_
