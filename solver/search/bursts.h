#ifndef CLEW_SOLVER_SEARCH_BURSTS_H_
#define CLEW_SOLVER_SEARCH_BURSTS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "solver/search/edges.h"
#include "solver/search/word_table.h"

namespace clew::solver {

// Whose bursts are split for a contradiction.
enum class SplitBursts : uint8_t {
  kNone,
  kOwn,     // those of the thread that it is of
  kOthers,  // those of all others
  kAll,
};

// Contested instructions of a thread of which each comes shortly after the one
// before, for up to 256 instructions, are a *burst*: a copy of many words, a
// counter that is read and written back. As a search takes a burst in one step,
// nothing comes between its accesses, as hardly ever anything did: of two
// copies of eight words each 12,870 orders become two. Where the evidence says
// that something did, bursts are *split*, for the instruction whose
// contradiction says so.
//
//     contested      c1 c2 c3 ........... c4 ..... c5 c6 ..
//     bursts         |------------------->|------->|-------
//     c2, c3 split   |->|->|------------->|------->|-------
//
// Which ones, depends on how often that instruction has contradicted: those of
// its thread before it, then those of the others instead, as either may have
// been interrupted by the other, then all.
class Bursts {
 public:
  // `table` says what is contested. Borrowed. Instructions that are more than
  // `gap_insns` apart are of two bursts; 0: each is one by itself.
  Bursts(size_t thread_count, const WordTable& table, uint64_t gap_insns)
      : table_(table), gap_insns_(gap_insns), split_(thread_count) {}

  // Returns where the step ends that begins with the thread's instruction
  // `begin`: at a contested one, or `insns_max` further. REQUIRES: insns_max is
  // not less than the instructions of a burst.
  uint64_t EndOf(uint32_t thread, uint64_t begin, uint64_t insns_max) const;

  // Notes a contradiction at `why`, and returns whose bursts are to be split
  // for it now: what was split for it before is not split any more then.
  SplitBursts NoteContradiction(InsnRef why);

  // Splits, for a contradiction at `why`, the thread's bursts from its
  // instruction `begin` up to `end`.
  void Split(InsnRef why, uint32_t thread, uint64_t begin, uint64_t end);
  bool IsSplit(InsnRef insn) const {
    return split_[insn.thread].contains(insn.insn);
  }

 private:
  const WordTable& table_;
  uint64_t gap_insns_;
  // By thread and instruction, for which contradiction.
  std::vector<std::unordered_map<uint64_t, InsnRef>> split_;
  std::map<InsnRef, uint64_t> contradictions_;
};

}  // namespace clew::solver

#endif  // CLEW_SOLVER_SEARCH_BURSTS_H_
