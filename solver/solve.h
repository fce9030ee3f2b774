#ifndef CLEW_SOLVER_SOLVE_H_
#define CLEW_SOLVER_SOLVE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/progress.h"
#include "common/result.h"
#include "common/schedule.h"
#include "constraints/verdict.h"
#include "follower/recording.h"
#include "solver/model_difference.h"
#include "solver/search/window_search.h"
#include "solver/whole_search.h"

// From a recording to a schedule. The layers, from below:
//
//   constraints/     expressions, traces of constraints, the executor's
//                    interface; certain order, the checker of orders
//   follower/        the recorded process, run on the machine by a schedule;
//                    the guess, and what time and cores permit
//   symbolic/        writes the constraints of a followed run down; marks what
//                    depends on contested words
//   solver/search/   engines that run the program: the guess and windows around
//                    its contradictions (window_search); depth-first, repair
//                    and beam over the executor's interface
//   solver/smt/      formulas, and Z3 in a process of its own
//   solver/          Portfolio: engines in turns on one executor. SearchWhole:
//                    the portfolio on the whole recording, in rounds. Solve,
//                    below: who takes turns when. CheckSchedule: the judge
//
// Nearly every recording that was solved was solved by the guess or by window
// search; the others are for what has no beginning, thin evidence and proofs
// that no order fits.

namespace clew::solver {

// kUnsat: it is proven that no order agrees with the evidence, and
// SolveReport::conflict says where; of a recording that is whole,
// SolveReport::difference says that it is clew's model that differs. kUnknown:
// all else; SolveReport::reason says what ended the search.

struct SolveOptions {
  // Of the search: what the recording takes to be followed to the first
  // contradiction is not counted, nor is the check of the witness.
  double time_limit_s = 60;
  follower::TapeLimits tape;
  WindowSearchOptions windows;
  // Ambiguity and evidence are measured for recordings up to this length, at
  // some million instructions a second.
  uint64_t measure_insns_max = 2'000'000;
  // Engines that know sequential consistency alone are left out: they have had
  // their time. REQUIRES: the recording has a model.
  bool only_model = false;
};

struct SolveReport {
  constraints::Verdict verdict = constraints::Verdict::kUnknown;
  // The memory model that the search was allowed; Schedule::model is that which
  // the witness needed.
  MemoryModelKind model = MemoryModelKind::kSc;
  Schedule schedule;           // kWitness
  WindowSearchReport windows;  // of the search that came furthest
  uint64_t restarts = 0;       // of the window search, by other seeds
  WholeSearchReport whole;
  uint64_t contested = 0;  // contested instructions known
  // Bits of choice and of evidence; absent for recordings too large to write
  // down as constraints.
  std::optional<constraints::Ambiguity> ambiguity;
  follower::MemoryComparison memory;
  follower::RegisterComparison registers;
  uint64_t insns = 0;
  uint64_t outputs_differing = 0;  // output calls with other bytes
  double seconds = 0;
  std::vector<std::string> conflict;  // kUnsat: evidence that conflicts
  // kUnsat: the contradiction comes in every order, under every memory model,
  // as nothing contested stands behind it (solver/independence.h).
  bool in_every_order = false;
  // kUnsat, and the recording is whole: what happened has an order, so it is
  // the model that is wrong. Absent: what is lost of it may be the cause.
  std::optional<ModelDifference> difference;
  // kUnknown: what ended the search, how far each engine came, why a search
  // that refuted all it tried proves nothing, and what may help.
  std::string reason;
  std::vector<std::string> engines;
  std::vector<std::string> doubts;
  std::vector<std::string> advice;
};

// Looks under one memory model after the other, the strongest first, for about
// half of the time that is left each, the last one for all of it. Recording::
// model counts for nothing. The report is that of the first model under which
// there is a witness, or else of the last one that was asked, and kUnsat only
// if every model with buffers refuted it. Fails as Solve does.
[[nodiscard]] Result<SolveReport> SolveUnder(
    const follower::Recording& recording,
    const std::vector<MemoryModelKind>& models, const SolveOptions& options,
    ProgressSink* progress);

// Finds an interleaving that explains the recording: facts, guess, run, refine;
// then has it checked independently. Of one thread the only order is checked
// at once: it is followed once where it agrees, whatever its length. A kWitness
// report has passed that check. Under Recording::model stores may wait; kUnsat
// is then relative to it. Fails as OpenedRecording::Open, Process::Run and
// CheckSchedule do.
[[nodiscard]] Result<SolveReport> Solve(const follower::Recording& recording,
                                        const SolveOptions& options,
                                        ProgressSink* progress);

}  // namespace clew::solver

#endif  // CLEW_SOLVER_SOLVE_H_
