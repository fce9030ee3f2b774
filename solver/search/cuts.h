#ifndef CLEW_SOLVER_SEARCH_CUTS_H_
#define CLEW_SOLVER_SEARCH_CUTS_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <vector>

namespace clew::solver {

// Instructions, of each thread, before which a step of the search ends although
// nothing is known that conflicts with them, so that the other threads may act
// there. What they would do may lie after a contradiction and never have been
// seen (docs/design/solve.md, "When unsat is said").
class Cuts {
 public:
  explicit Cuts(size_t threads) : insns_(threads) {}

  void Add(size_t thread, uint64_t insn) { insns_[thread].insert(insn); }
  void Add(const Cuts& other) {
    for (size_t thread = 0; thread < insns_.size(); ++thread) {
      insns_[thread].insert(other.insns_[thread].begin(),
                            other.insns_[thread].end());
    }
  }
  bool Contains(size_t thread, uint64_t insn) const {
    return insns_[thread].contains(insn);
  }
  // Returns the thread's first one at or after `insn`; the largest number if
  // there is none.
  uint64_t Next(size_t thread, uint64_t insn) const {
    const auto found = insns_[thread].lower_bound(insn);
    return found == insns_[thread].end() ? std::numeric_limits<uint64_t>::max()
                                         : *found;
  }
  size_t count() const {
    size_t count = 0;
    for (const auto& insns : insns_) {
      count += insns.size();
    }
    return count;
  }

 private:
  std::vector<std::set<uint64_t>> insns_;
};

}  // namespace clew::solver

#endif  // CLEW_SOLVER_SEARCH_CUTS_H_
