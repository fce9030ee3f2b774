#include "solver/wait_cycle.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

namespace clew::solver {
namespace {

using Threads = std::vector<WaitingThread>;
using For = WaitingThread::For;

const HeldLock* HeldIn(const WaitingThread& thread, uint64_t addr) {
  const auto held = std::ranges::find(thread.held, addr, &HeldLock::addr);
  return held == thread.held.end() ? nullptr : &*held;
}

bool WaitsForLock(const WaitingThread& thread) {
  return thread.what == For::kLock || thread.what == For::kReadLock;
}

// Whether `other` has the lock in a form that keeps `thread` from it.
bool Keeps(const WaitingThread& other, const WaitingThread& thread) {
  const HeldLock* const held = HeldIn(other, thread.addr);
  return held != nullptr && !(held->shared && thread.what == For::kReadLock);
}

bool WaitsForLockOf(const Threads& threads, const WaitingThread& thread,
                    const WaitingThread& other) {
  if (Keeps(other, thread)) {
    return true;
  }
  const bool kept = std::ranges::any_of(
      threads, [&](const auto& each) { return Keeps(each, thread); });
  return thread.what == For::kReadLock && !kept && &other != &thread &&
         other.what == For::kLock && other.addr == thread.addr;
}

bool WaitsFor(const Threads& threads, const WaitingThread& thread,
              const WaitingThread& other, bool conditions) {
  switch (thread.what) {
    case For::kLock:
    case For::kReadLock:
      return WaitsForLockOf(threads, thread, other);
    case For::kThread:
      return other.thread == thread.joined;
    case For::kCondition:
      return conditions && WaitsForLock(other) && Keeps(thread, other);
    case For::kUnknown:
      break;
  }
  return false;
}

class CycleSearch {
 public:
  CycleSearch(const Threads& threads, bool conditions)
      : threads_(threads), conditions_(conditions), seen_(threads.size()) {}

  // The first cycle; empty: there is none.
  std::vector<size_t> Find() {
    for (size_t i = 0; i < threads_.size(); ++i) {
      if (!seen_[i] && Visit(i)) {
        return path_;
      }
    }
    return {};
  }

 private:
  // Whether a cycle is behind `at`; `path_` is then that cycle.
  bool Visit(size_t at) {
    const auto on_path = std::ranges::find(path_, at);
    if (on_path != path_.end()) {
      path_.erase(path_.begin(), on_path);
      return true;
    }
    if (seen_[at]) {
      return false;
    }
    seen_[at] = true;
    path_.push_back(at);
    for (size_t next = 0; next < threads_.size(); ++next) {
      if (WaitsFor(threads_, threads_[at], threads_[next], conditions_) &&
          Visit(next)) {
        return true;
      }
    }
    path_.pop_back();
    return false;
  }

  const Threads& threads_;
  bool conditions_;
  std::vector<bool> seen_;
  std::vector<size_t> path_;
};

}  // namespace

void OrderByCycle(std::vector<WaitingThread>& threads) {
  std::vector<size_t> cycle = CycleSearch(threads, false).Find();
  if (cycle.empty()) {
    cycle = CycleSearch(threads, true).Find();
  }
  Threads ordered;
  for (const size_t at : cycle) {
    threads[at].in_cycle = true;
    ordered.push_back(threads[at]);
  }
  std::ranges::copy_if(threads, std::back_inserter(ordered),
                       [](const auto& thread) { return !thread.in_cycle; });
  threads = std::move(ordered);
}

}  // namespace clew::solver
