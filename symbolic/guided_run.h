#ifndef CLEW_SYMBOLIC_GUIDED_RUN_H_
#define CLEW_SYMBOLIC_GUIDED_RUN_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "common/inputs.h"
#include "common/progress.h"
#include "common/result.h"
#include "common/schedule.h"
#include "process/process.h"
#include "symbolic/edges.h"
#include "symbolic/guess.h"
#include "symbolic/order_rules.h"
#include "symbolic/word_table.h"

namespace clew::symbolic {

// The schedule up to a point, shared by all runs that go on from there.
struct RunHistory {
  std::vector<ScheduleStep> steps;  // since `previous`
  std::shared_ptr<const RunHistory> previous;
};

// A point of a run to go back to. Points form a tree: a run that was tried
// differently from some point on shares what came before.
struct RunPoint {
  process::Process process;
  OrderRules rules;
  Guess guess;
  std::shared_ptr<const RunHistory> history;
  // nullptr: the beginning, or nothing before is kept (forget_before_insns).
  std::shared_ptr<RunPoint> previous;
};

struct RunOutcome {
  enum class End : uint8_t {
    kWitness,        // every stream ended and the failure agrees
    kContradiction,  // `contradiction` says what
    kStuck,          // nobody may go on, by decisions, time or futexes
    kCutOff,         // GuidedRunOptions::insns_max
  };
  End end = End::kStuck;
  process::Contradiction contradiction;
  std::shared_ptr<RunPoint> last;   // the last point before the end
  std::vector<ScheduleStep> steps;  // since `last`
  uint64_t retired_total = 0;
  std::vector<uint64_t> retired;  // by thread
  // Threads that were held back because they contradicted the evidence, and
  // still were at the end.
  std::vector<process::Contradiction> held_back;
  std::vector<OrderEdge> found_edges;  // what delay gates turned into
  bool forgot = false;                 // the beginning of the tape is gone
};

struct GuidedRunOptions {
  // Instructions between two points; doubles each time points_max is reached.
  uint64_t point_insns = 200'000;
  uint64_t points_max = 256;
  // A run that has retired more than this keeps only its last points_kept
  // points, and the tape between them: memory does not grow with its length.
  // With a word table, which a search needs points for, four times as much.
  uint64_t forget_before_insns = 30'000'000;
  uint64_t points_kept = 64;
  // The run is cut off after this many instructions.
  uint64_t insns_max = ~uint64_t{0};
};

// Runs the guess under decisions until something contradicts it.
//
// With a word table, one step runs a thread through its next contested
// instruction and on to the one after. A step that contradicts the evidence is
// taken back, and its thread held back until another thread has written one of
// the shared words that the step read: a lock is then taken in the recorded
// order without any search. Only when nobody else may go on either is it the
// run's contradiction.
//
// Not complete: a step that should have come *earlier* is not tried.
class GuidedRunner {
 public:
  // All borrowed; they must outlive the runner. `words` may be nullptr: nothing
  // is learned, no step is taken back and no delay gate can open, but it is
  // several times as fast.
  GuidedRunner(const Failure& failure, WordTable* words,
               GuidedRunOptions options, ProgressSink* progress);

  // Goes on from `from` (which stays as it is).
  [[nodiscard]] Result<RunOutcome> Run(std::shared_ptr<RunPoint> from,
                                       const Decisions& decisions);

  uint64_t insns_run() const { return insns_run_; }

 private:
  const Failure& failure_;
  WordTable* words_;
  GuidedRunOptions options_;
  ProgressSink* progress_;
  uint64_t insns_run_ = 0;
};

// All steps from the beginning, neighbours of one thread merged.
std::vector<ScheduleStep> CollectSteps(const RunOutcome& outcome);

}  // namespace clew::symbolic

#endif  // CLEW_SYMBOLIC_GUIDED_RUN_H_
