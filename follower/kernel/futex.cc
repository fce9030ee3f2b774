#include "follower/kernel/futex.h"

#include <algorithm>

#include "common/check.h"
#include "common/digest.h"

namespace clew::follower {

bool FutexTable::Word::MayWake(uint64_t wanted, uint64_t woken) const {
  const uint64_t surely_asleep = strict > permits ? strict - permits : 0;
  return woken <= Asleep() &&
         (passed_over || woken >= wanted || surely_asleep <= woken);
}

uint64_t FutexTable::RootOf(uint64_t addr) const {
  for (auto at = joined_.find(addr); at != joined_.end();
       at = joined_.find(addr)) {
    addr = at->second;
  }
  return addr;
}

void FutexTable::Join(uint64_t from, uint64_t to) {
  from = RootOf(from);
  to = RootOf(to);
  if (from == to) {
    return;
  }
  const Word moved = words_[from];
  words_.erase(from);
  joined_[from] = to;
  Word& word = words_[to];
  word.strict += moved.strict;
  word.loose += moved.loose;
  word.permits += moved.permits;
  word.passed_over = true;
}

void FutexTable::Wait(uint64_t addr, bool needs_wake, Match match) {
  Word& word = WordAt(addr);
  word.passed_over = word.passed_over || match == Match::kBits;
  ++(needs_wake ? word.strict : word.loose);
}

bool FutexTable::MayReturn(uint64_t addr) const {
  const auto found = words_.find(RootOf(addr));
  return found != words_.end() && found->second.permits > 0;
}

void FutexTable::Return(uint64_t addr, bool needs_wake) {
  Word& word = WordAt(addr);
  uint64_t& count = needs_wake ? word.strict : word.loose;
  CLEW_CHECK(count > 0, "a thread returns from a futex it did not wait on");
  --count;
  if (needs_wake) {
    CLEW_CHECK(word.permits > 0, "a futex waiter returns without a wake");
    --word.permits;
  }
  word.permits = std::min(word.permits, word.strict + word.loose);
}

bool FutexTable::Wake(uint64_t addr, uint64_t wanted, uint64_t woken,
                      Match match) {
  Word& word = WordAt(addr);
  const bool possible = match == Match::kAny ? word.MayWake(wanted, woken)
                                             : woken <= word.Asleep();
  word.permits += possible ? woken : 0;
  return possible;
}

// Where several divisions are possible, the one with most at `addr`: the kernel
// begins there.
bool FutexTable::WakeTwo(uint64_t addr, uint64_t wanted, uint64_t other,
                         uint64_t wanted_there, uint64_t woken) {
  if (RootOf(addr) == RootOf(other)) {
    return Wake(addr, wanted + wanted_there, woken, Match::kBits);
  }
  for (uint64_t here = std::min(wanted, woken) + 1; here-- > 0;) {
    const uint64_t there = woken - here;
    if (there <= wanted_there && WordAt(addr).MayWake(wanted, here) &&
        WordAt(other).MayWake(wanted_there, there)) {
      WordAt(addr).permits += here;
      WordAt(other).permits += there;
      return true;
    }
  }
  return false;
}

bool FutexTable::Requeue(uint64_t from, uint64_t to, uint64_t wanted,
                         uint64_t moved, uint64_t reached) {
  if (!WordAt(from).MayWake(wanted + moved, reached)) {
    return false;
  }
  WordAt(from).permits += std::min(wanted, reached);
  if (reached > wanted) {
    Join(from, to);
  }
  return true;
}

uint64_t FutexTable::Digest() const {
  uint64_t digest = 0;
  for (const auto& [addr, word] : words_) {
    if (word.strict + word.loose > 0) {
      digest += MixBits(MixBits(addr) ^ (word.strict << 42) ^
                        (word.loose << 21) ^ word.permits) +
                word.passed_over;
    }
  }
  for (const auto& [from, to] : joined_) {
    digest += MixBits(MixBits(from) + to);
  }
  return digest;
}

void FutexTable::WakeOnExit(uint64_t addr) {
  const auto found = words_.find(RootOf(addr));
  if (found == words_.end()) {
    return;
  }
  Word& word = found->second;
  word.permits = std::min(word.permits + 1, word.strict + word.loose);
}

}  // namespace clew::follower
