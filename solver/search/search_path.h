#ifndef CLEW_SOLVER_SEARCH_SEARCH_PATH_H_
#define CLEW_SOLVER_SEARCH_SEARCH_PATH_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "constraints/executor.h"
#include "constraints/verdict.h"

// What all engines that run the program have in common.

namespace clew::solver {

// From a read that is taken back, an engine also looks at so many reads just
// before the write it got its value from, of the thread that wrote.
inline constexpr size_t kWriterReads = 4;

struct SearchStats {
  uint64_t nodes = 0;  // states at which a choice was made
  uint64_t steps = 0;  // calls of Executor::Step
  uint64_t contradictions = 0;
  uint64_t back_jumps = 0;
  uint64_t states_remembered = 0;
  uint64_t deepest = 0;  // most steps of one path that was consistent
  double seconds = 0;
  void Add(const SearchStats& other);
};

struct SearchAnswer {
  constraints::Verdict verdict = constraints::Verdict::kUnknown;
  constraints::StepOrder witness;
  std::string why;  // for kUnknown
  SearchStats stats;
  // The contradiction of the deepest path, for people.
  std::string deepest_contradiction;
};

// A path through an executor with a log of what was stepped. Engines share an
// executor by turns: each sets a mark when it begins, rolls back to it when it
// ends, and keeps no mark in between, because the next one forgets them.
class SearchPath {
 public:
  struct Entry {
    uint32_t thread;
    uint32_t frame;  // the caller's count of choices when it was stepped
    bool reads;
    bool writes;
    bool has_word;
    uint64_t word;
    uint32_t size_bytes;
  };
  struct Mark {
    constraints::Executor::Mark executor;
    size_t steps;
  };

  // The executor must outlive the path, and stands at its start.
  explicit SearchPath(constraints::Executor& executor);

  constraints::Executor& executor() { return executor_; }
  constraints::StepResult Step(uint32_t thread, uint32_t frame);

  enum class Outcome : uint8_t { kChoice, kWitness, kDead };
  // Takes every step that needs no choice. kChoice: some thread is enabled and
  // each enabled one is at a contested step. kDead: evidence is violated, or no
  // thread can go on.
  Outcome Advance(uint32_t frame);
  // Returns whether the last Step or Advance ended in a contradiction, so that
  // the executor knows conflict sets. (Asking it for them may be expensive.)
  bool contradicted() const { return contradicted_; }

  Mark SetMark();
  void RollBack(const Mark& mark);

  const std::vector<Entry>& log() const { return log_; }
  // Returns where in the log the thread made its step-th step; log().size() if
  // never.
  size_t PositionOf(uint32_t thread, uint64_t step) const;
  uint64_t StepsOf(uint32_t thread) const { return positions_[thread].size(); }
  // Returns the position of the last write to the range by another thread
  // before `position`; log().size() if there is none. `thread` may be
  // kNoThread.
  size_t LastForeignWrite(uint32_t thread, uint64_t word, uint32_t size_bytes,
                          size_t position) const;
  constraints::StepOrder Order() const;

  SearchStats& stats() { return stats_; }
  const std::string& deepest_contradiction() const { return deepest_text_; }

 private:
  bool RunEagerly(uint32_t thread, uint32_t frame, bool& progress);
  Outcome AtRest();
  void NoteContradiction();

  constraints::Executor& executor_;
  std::vector<Entry> log_;
  std::vector<std::vector<size_t>> positions_;  // log positions, by thread
  bool contradicted_ = false;
  uint64_t deepest_contradiction_at_ = 0;
  SearchStats stats_;
  std::string deepest_text_;
};

}  // namespace clew::solver

#endif  // CLEW_SOLVER_SEARCH_SEARCH_PATH_H_
