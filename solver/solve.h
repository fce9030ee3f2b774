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
#include "solver/races.h"
#include "solver/search/window_search.h"
#include "solver/whole_search.h"

// From a recording to a schedule. The layers, from below:
//
//   constraints/     expressions, traces of constraints, the executor's
//                    interface; certain order, the checker of orders
//   follower/        the recorded process, run on the machine by a schedule;
//                    the guess, and what time and cores permit
//   symbolic/        writes the constraints of a followed run down
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

// kUnsat: it is proven that the evidence contradicts itself, and
// SolveReport::conflict says where. kUnknown: all else; SolveReport::reason
// says what ended the search.

struct SolveOptions {
  double time_limit_s = 60;
  follower::TapeLimits tape;
  WindowSearchOptions windows;
  // Ambiguity and evidence are measured of recordings up to this length, at
  // some million instructions a second.
  uint64_t measure_insns_max = 2'000'000;
};

struct SolveReport {
  constraints::Verdict verdict = constraints::Verdict::kUnknown;
  Schedule schedule;           // kWitness
  WindowSearchReport windows;  // of the search that came furthest
  uint64_t restarts = 0;       // of the window search, by other seeds
  WholeSearchReport constructive;
  uint64_t contested = 0;  // contested instructions known
  // Bits of choice and of evidence; absent for recordings too large to write
  // down as constraints.
  std::optional<constraints::Ambiguity> ambiguity;
  follower::MemoryComparison memory;
  follower::RegisterComparison registers;
  uint64_t insns = 0;
  uint64_t outputs_differing = 0;  // output calls with other bytes
  double seconds = 0;
  std::vector<Race> races;            // kWitness
  std::vector<std::string> conflict;  // kUnsat: evidence that conflicts
  // kUnknown: what ended the search, how far each engine came, why a search
  // that refuted all it tried proves nothing, and what may help.
  std::string reason;
  std::vector<std::string> engines;
  std::vector<std::string> doubts;
  std::vector<std::string> advice;
};

// Finds an interleaving that explains the recording: facts, guess, run, refine;
// then has it checked independently. A kWitness report has passed that check.
[[nodiscard]] Result<SolveReport> Solve(const follower::Recording& recording,
                                        const SolveOptions& options,
                                        ProgressSink* progress);

}  // namespace clew::solver

#endif  // CLEW_SOLVER_SOLVE_H_
