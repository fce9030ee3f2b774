// Goal: the edges of an order of accesses imply, with program order, the order
// of every two accesses that conflict, and say nothing else of them.
// Method: property over random orders of three threads on three words, seed
// printed. Oracle: the transitive closure, by brute force.
#include "solver/order_edges.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <vector>

#include "common/digest.h"

namespace clew::solver {
namespace {

using constraints::AccessOrder;
using constraints::TraceAccess;

constexpr uint32_t kThreadCount = 3;
constexpr uint64_t kInsnsPerAccess = 10;

struct Case {
  symbolic::BuiltTrace built;
  AccessOrder order;
};

Case RandomCase(Random& random) {
  constexpr AccessKind kKinds[] = {AccessKind::kRead, AccessKind::kWrite,
                                   AccessKind::kReadModifyWrite};
  Case made;
  made.built.trace.threads.resize(kThreadCount);
  made.built.insns.resize(kThreadCount);
  for (uint64_t i = random.Below(25); i > 0; --i) {
    const auto thread = static_cast<uint32_t>(random.Below(kThreadCount));
    TraceAccess access;
    access.kind = kKinds[random.Below(3)];
    access.addr = TraceeAddr(0x1000 + 8 * random.Below(3));
    access.size_bytes = 8;
    auto& accesses = made.built.trace.threads[thread].accesses;
    made.built.insns[thread].push_back(kInsnsPerAccess * accesses.size());
    accesses.push_back(access);
    made.order.push_back(thread);
  }
  return made;
}

// The accesses of the order as instructions, in that order.
std::vector<InsnRef> InsnsOf(const Case& made) {
  std::vector<size_t> next(kThreadCount);
  std::vector<InsnRef> insns;
  for (const uint32_t thread : made.order) {
    insns.push_back({thread, made.built.insns[thread][next[thread]++]});
  }
  return insns;
}

// before[i][j]: i is before j, by the edges and program order.
std::vector<std::vector<bool>> Closure(const std::vector<InsnRef>& insns,
                                       const std::vector<OrderEdge>& edges) {
  const size_t count = insns.size();
  std::vector<std::vector<bool>> before(count, std::vector<bool>(count));
  for (size_t i = 0; i < count; ++i) {
    for (size_t j = 0; j < count; ++j) {
      before[i][j] =
          insns[i].thread == insns[j].thread && insns[i].insn < insns[j].insn;
      for (const OrderEdge& edge : edges) {
        before[i][j] =
            before[i][j] || (edge.before == insns[i] && edge.after == insns[j]);
      }
    }
  }
  for (size_t k = 0; k < count; ++k) {
    for (size_t i = 0; i < count; ++i) {
      for (size_t j = 0; j < count; ++j) {
        before[i][j] = before[i][j] || (before[i][k] && before[k][j]);
      }
    }
  }
  return before;
}

const TraceAccess& AccessAt(const Case& made, InsnRef insn) {
  return made.built.trace.threads[insn.thread]
      .accesses[insn.insn / kInsnsPerAccess];
}

TEST(OrderEdgesTest, EveryConflictIsOrderedAsInTheOrder) {
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed);
    const Case made = RandomCase(random);
    const std::vector<InsnRef> insns = InsnsOf(made);
    const auto before = Closure(insns, EdgesOf(made.built, made.order));
    for (size_t a = 0; a < insns.size(); ++a) {
      for (size_t b = a + 1; b < insns.size(); ++b) {
        const TraceAccess& first = AccessAt(made, insns[a]);
        const TraceAccess& second = AccessAt(made, insns[b]);
        if (first.addr == second.addr &&
            (Writes(first.kind) || Writes(second.kind))) {
          EXPECT_TRUE(before[a][b]);
        }
        EXPECT_FALSE(before[b][a]);
      }
    }
  }
}

}  // namespace
}  // namespace clew::solver
