#include "solver/thread_order.h"

#include <algorithm>

namespace clew::solver {

ThreadOrder::Clock& ThreadOrder::ClockOf(size_t thread) {
  if (thread >= clocks_.size()) {
    clocks_.resize(thread + 1);
  }
  Clock& clock = clocks_[thread];
  if (thread >= clock.size()) {
    clock.resize(thread + 1);
    clock[thread] = 1;
  }
  return clock;
}

ThreadOrder::Stamp ThreadOrder::Of(size_t thread) {
  return {.thread = static_cast<uint32_t>(thread),
          .count = ClockOf(thread)[thread]};
}

bool ThreadOrder::IsBefore(const Stamp& stamp, size_t thread) {
  const Clock& clock = ClockOf(thread);
  return stamp.thread < clock.size() && stamp.count <= clock[stamp.thread];
}

void ThreadOrder::Merge(const Clock& from, Clock& to) {
  to.resize(std::max(from.size(), to.size()));
  for (size_t i = 0; i < from.size(); ++i) {
    to[i] = std::max(from[i], to[i]);
  }
}

void ThreadOrder::Pass(size_t before, size_t after) {
  ClockOf(after);
  Clock& clock = ClockOf(before);
  Merge(clock, clocks_[after]);
  ++clock[before];
}

void ThreadOrder::Give(size_t thread, uint64_t lock) {
  Clock& clock = ClockOf(thread);
  given_[lock] = clock;
  ++clock[thread];
}

void ThreadOrder::Take(size_t thread, uint64_t lock) {
  const auto given = given_.find(lock);
  if (given != given_.end()) {
    Merge(given->second, ClockOf(thread));
  }
}

}  // namespace clew::solver
