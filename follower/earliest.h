#ifndef CLEW_FOLLOWER_EARLIEST_H_
#define CLEW_FOLLOWER_EARLIEST_H_

#include <bitset>
#include <cstddef>
#include <optional>

#include "common/result.h"
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
// of the thread's next block. A thread whose next block is far off is not
// looked at: finding it would mean decoding all that ran on its core meanwhile.
template <class MayGo, class KeyOf>
Result<std::optional<Earliest>> FindEarliest(const Process& process,
                                             OrderRules& rules, MayGo may_go,
                                             KeyOf key_of) {
  std::optional<Earliest> best;
  // Looking at one thread may bring another one's block onto the tape. Threads
  // for which there is no room here are looked at twice.
  std::bitset<256> looked_at;
  for (const bool on_tape : {true, false}) {
    for (size_t thread = 0; thread < process.thread_count(); ++thread) {
      if ((on_tape && !process.NextIsOnTape(thread)) ||
          (thread < looked_at.size() && looked_at[thread])) {
        continue;
      }
      if (thread < looked_at.size()) {
        looked_at[thread] = true;
      }
      if (!may_go(thread) || (best && process.NextIsAfter(thread, best->key))) {
        continue;
      }
      CLEW_ASSIGN_OR_RETURN(can_run, process.CanRun(thread));
      if (!can_run) {
        continue;
      }
      CLEW_ASSIGN_OR_RETURN(key, key_of(thread));
      if (best && key >= best->key) {
        continue;
      }
      CLEW_ASSIGN_OR_RETURN(permitted, rules.Permits(process, thread));
      if (permitted) {
        best = Earliest{.thread = thread, .key = key};
      }
    }
  }
  return best;
}

}  // namespace clew::follower

#endif  // CLEW_FOLLOWER_EARLIEST_H_
