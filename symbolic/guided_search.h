#ifndef CLEW_SYMBOLIC_GUIDED_SEARCH_H_
#define CLEW_SYMBOLIC_GUIDED_SEARCH_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/inputs.h"
#include "common/progress.h"
#include "common/result.h"
#include "symbolic/edges.h"
#include "symbolic/guess.h"
#include "symbolic/guided_run.h"
#include "symbolic/word_table.h"

namespace clew::symbolic {

struct GuidedSearchOptions {
  uint64_t runs_max = 20'000;  // tries, counting the guess
  uint32_t guesses = 8;        // differently seeded ones, once one failed
  uint64_t guesses_insns_max = 20'000'000;  // no more of them beyond this
  uint32_t alternatives_max = 96;           // per contradiction
  uint64_t seed = 1;
  // Instructions that a pass along forced paths goes over at most.
  uint64_t learn_insns_max = 100'000'000;
  GuidedRunOptions run;
};

struct GuidedSearchReport {
  bool found = false;
  std::vector<ScheduleStep> steps;
  uint64_t decisions = 0;       // order decisions of the witness
  uint64_t runs = 0;            // tries
  uint64_t insns_run = 0;       // over all tries
  uint64_t contradictions = 0;  // tries that ended in one
  bool guess_was_enough = false;
  std::string reason;               // if not found: why the search stopped
  process::Contradiction furthest;  // if not found: the latest contradiction
  uint64_t furthest_insns = 0;      // of all threads, before it
  bool exhausted = false;  // every alternative that the search knows was tried
};

// Finds decisions about the order of contested accesses under which the guess
// meets no contradiction.
//
// Each contradiction of thread t gives alternatives: one of t's last reads of
// shared words is moved before the foreign write it read from, or behind the
// next one; then pairs of conflicting accesses to the same words, and to any
// words, are turned round. A best-first search over sets of such decisions
// follows the one whose run gets furthest. It goes back only as far as the
// decision that changed, so its cost follows the number of wrong guesses, not
// the length of the run.
//
// Not complete: exhausted alternatives are no proof that nothing fits.
class GuidedSearch {
 public:
  // `start` and `failure` are borrowed, and `progress`, which may be nullptr.
  GuidedSearch(const process::Process& start, const Failure& failure,
               uint64_t clock_slack_ticks, const GuidedSearchOptions& options,
               ProgressSink* progress);
  ~GuidedSearch();
  GuidedSearch(const GuidedSearch&) = delete;
  GuidedSearch& operator=(const GuidedSearch&) = delete;

  // Runs the first guess. True: it agrees with all evidence.
  [[nodiscard]] Result<bool> TryGuess();
  // Finds out which words are shared and which accesses contested, along the
  // recorded paths. After a failed guess; nothing is learned of long runs.
  [[nodiscard]] Status Learn();
  // Other guesses, then decisions, for at most `seconds`; may be called again.
  // True: found.
  [[nodiscard]] Result<bool> Improve(double seconds);

  // Runs the guess under these decisions, from the beginning. True: found.
  [[nodiscard]] Result<bool> TryDecisions(const Decisions& decisions);

  // A run too long to learn all of.
  bool long_run() const;
  WordTable& words();
  // The report so far.
  const GuidedSearchReport& report() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace clew::symbolic

#endif  // CLEW_SYMBOLIC_GUIDED_SEARCH_H_
