#ifndef CLEW_SYMBOLIC_EDGES_H_
#define CLEW_SYMBOLIC_EDGES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace clew::symbolic {

// An instruction of a thread by its number: how many the thread retired before
// it. Paths are recorded, so this names the same instruction in every schedule.
struct InsnRef {
  uint32_t thread = 0;
  uint64_t insn = 0;
  auto operator<=>(const InsnRef&) const = default;
};

// What the search has decided: `before` retires before `after` does.
struct OrderEdge {
  InsnRef before;
  InsnRef after;
  bool operator==(const OrderEdge&) const = default;
};

// A decision whose other end is not known yet: `held` waits until another
// thread has written the 8-byte word `word` after the held thread came there.
struct DelayGate {
  InsnRef held;
  uint64_t word = 0;  // address / 8
  bool operator==(const DelayGate&) const = default;
};

struct Decisions {
  std::vector<OrderEdge> edges;
  std::vector<DelayGate> gates;
};

}  // namespace clew::symbolic

#endif  // CLEW_SYMBOLIC_EDGES_H_
