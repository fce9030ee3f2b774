#ifndef CLEW_SOLVER_SEARCH_EDGES_H_
#define CLEW_SOLVER_SEARCH_EDGES_H_

#include <cstdint>

namespace clew::solver {

// An instruction of a thread by its number: how many the thread retired before
// it. Paths are recorded, so this names the same instruction in every schedule.
struct InsnRef {
  uint32_t thread = 0;
  uint64_t insn = 0;
  auto operator<=>(const InsnRef&) const = default;
};

// `before` retires before `after` does.
struct OrderEdge {
  InsnRef before;
  InsnRef after;
};

}  // namespace clew::solver

#endif  // CLEW_SOLVER_SEARCH_EDGES_H_
