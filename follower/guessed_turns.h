#ifndef CLEW_FOLLOWER_GUESSED_TURNS_H_
#define CLEW_FOLLOWER_GUESSED_TURNS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "common/result.h"
#include "follower/earliest.h"
#include "follower/guess.h"
#include "follower/order_rules.h"
#include "follower/process.h"

namespace clew::follower {

struct Turn {
  size_t thread = 0;
  uint64_t until_insn = 0;  // as ThreadState::retired
};

// Returns who goes next, and how far, in the order of the guess that the order
// rules permit; nullopt if nobody may go on. No thread comes to have retired
// more than `limit_of(thread)` instructions. Fails as the process, the rules
// and the guess do.
template <class LimitOf>
[[nodiscard]] Result<std::optional<Turn>> NextTurn(const Process& process,
                                                   OrderRules& rules,
                                                   Guess& guess,
                                                   LimitOf limit_of) {
  CLEW_ASSIGN_OR_RETURN(
      earliest,
      FindEarliest(
          process, rules,
          [&](size_t t) { return process.thread(t).retired < limit_of(t); },
          [&](size_t t) { return guess.KeyOf(process, t); }));
  if (!earliest) {
    return std::optional<Turn>();
  }
  const size_t thread = earliest->thread;
  CLEW_ASSIGN_OR_RETURN(end, guess.GrainEnd(process, thread));
  return Turn{.thread = thread, .until_insn = std::min(limit_of(thread), end)};
}

// The turns of a process from its start. A copy belongs to a copy of the
// process.
class GuessedTurns {
 public:
  GuessedTurns(const Process& process, uint64_t clock_slack_ticks)
      : rules_(process, clock_slack_ticks), guess_(process, {}) {}

  // As NextTurn.
  template <class LimitOf>
  [[nodiscard]] Result<std::optional<Turn>> Next(const Process& process,
                                                 LimitOf limit_of) {
    return NextTurn(process, rules_, guess_, limit_of);
  }

 private:
  OrderRules rules_;
  Guess guess_;
};

}  // namespace clew::follower

#endif  // CLEW_FOLLOWER_GUESSED_TURNS_H_
