#ifndef CLEW_FOLLOWER_EARLIEST_H_
#define CLEW_FOLLOWER_EARLIEST_H_

#include <bitset>
#include <cstddef>
#include <optional>
#include <utility>

#include "common/result.h"
#include "common/units.h"
#include "follower/order_rules.h"
#include "follower/process.h"

namespace clew::follower {

struct Earliest {
  size_t thread = 0;
  double key = 0;
};

// Finds the thread with the smallest key among those that may go on, by the
// process and the order rules, and for which `may_go(thread)` holds; returns
// nullopt if there is none. Fails as the process, the rules and `key_of` do.
// `key_of(thread)`, a Result<double>, must be no smaller than the lower bound
// of the thread's next block. To find a thread's next block may mean to decode
// all that ran on its core meanwhile, which then waits for its threads: so
// those whose next block is at hand are looked at first, the others in the
// order in which theirs may begin, and none that begins behind the smallest
// key.
template <class MayGo, class KeyOf>
Result<std::optional<Earliest>> FindEarliest(const Process& process,
                                             OrderRules& rules, MayGo may_go,
                                             KeyOf key_of) {
  std::optional<Earliest> best;
  const auto look_at = [&](size_t thread) -> Status {
    CLEW_ASSIGN_OR_RETURN(can_run, process.CanRun(thread));
    if (!can_run) {
      return {};
    }
    CLEW_ASSIGN_OR_RETURN(key, key_of(thread));
    if (best && key >= best->key) {
      return {};
    }
    CLEW_ASSIGN_OR_RETURN(permitted, rules.Permits(process, thread));
    if (permitted) {
      best = Earliest{.thread = thread, .key = key};
    }
    return {};
  };
  // Threads for which there is no room here are looked at twice.
  std::bitset<4096> looked_at;
  for (size_t thread = 0; thread < process.thread_count(); ++thread) {
    if (process.IsOut(thread) || !process.NextIsOnTape(thread)) {
      continue;
    }
    if (thread < looked_at.size()) {
      looked_at[thread] = true;
    }
    if (may_go(thread)) {
      CLEW_RETURN_IF_ERROR(look_at(thread));
    }
  }
  using Place = std::pair<TscTicks, size_t>;
  Place last = {TscTicks(0), 0};
  for (bool is_first = true;; is_first = false) {
    std::optional<Place> next;
    for (size_t thread = 0; thread < process.thread_count(); ++thread) {
      if ((thread < looked_at.size() && looked_at[thread]) ||
          process.IsOut(thread) || !may_go(thread) ||
          (best && process.NextIsAfter(thread, best->key))) {
        continue;
      }
      // Looking at one thread may have brought another one's block onto the
      // tape.
      const Place place = {process.NextNotBefore(thread), thread};
      if ((is_first || place > last) && (!next || place < *next)) {
        next = place;
      }
    }
    if (!next) {
      return best;
    }
    last = *next;
    if (last.second < looked_at.size()) {
      looked_at[last.second] = true;
    }
    CLEW_RETURN_IF_ERROR(look_at(last.second));
  }
}

}  // namespace clew::follower

#endif  // CLEW_FOLLOWER_EARLIEST_H_
