#include "constraints/guess_keys.h"

#include <functional>
#include <queue>
#include <utility>

namespace clew::constraints {

std::vector<double> GuessKeys(const ConstraintTrace& trace) {
  std::vector<double> keys;
  for (const auto& thread : trace.threads) {
    const auto& accesses = thread.accesses;
    for (size_t i = 0; i < accesses.size();) {
      size_t end = i;
      while (end < accesses.size() && accesses[end].time == accesses[i].time) {
        ++end;
      }
      const auto lo = static_cast<double>(accesses[i].time.lo.as_int());
      const auto hi = static_cast<double>(accesses[i].time.hi.as_int());
      for (size_t k = i; k < end; ++k) {
        const double share =
            (static_cast<double>(k - i) + 0.5) / static_cast<double>(end - i);
        keys.push_back(lo + share * (hi - lo + 1));
      }
      i = end;
    }
  }
  return keys;
}

std::vector<uint32_t> GuessedOrder(const MustOrder& order,
                                   const std::vector<double>& keys) {
  std::vector<std::vector<uint32_t>> successors(order.access_count());
  std::vector<uint32_t> open(order.access_count(), 0);
  for (const auto& edge : order.edges()) {
    successors[edge.before].push_back(edge.after);
    ++open[edge.after];
  }
  using Entry = std::pair<double, uint32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  for (uint32_t id = 0; id < order.access_count(); ++id) {
    if (open[id] == 0) {
      ready.emplace(keys[id], id);
    }
  }
  std::vector<uint32_t> result;
  while (!ready.empty()) {
    const uint32_t id = ready.top().second;
    ready.pop();
    result.push_back(id);
    for (uint32_t next : successors[id]) {
      if (--open[next] == 0) {
        ready.emplace(keys[next], next);
      }
    }
  }
  return result;
}

}  // namespace clew::constraints
