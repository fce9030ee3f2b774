#include "follower/futex.h"

#include <algorithm>

#include "common/check.h"
#include "common/digest.h"

namespace clew::follower {

void FutexTable::Wait(uint64_t addr, bool needs_wake) {
  Word& word = words_[addr];
  ++(needs_wake ? word.strict : word.loose);
}

bool FutexTable::MayReturn(uint64_t addr) const {
  const auto found = words_.find(addr);
  return found != words_.end() && found->second.permits > 0;
}

void FutexTable::Return(uint64_t addr, bool needs_wake) {
  Word& word = words_[addr];
  uint64_t& count = needs_wake ? word.strict : word.loose;
  CLEW_CHECK(count > 0, "a thread returns from a futex it did not wait on");
  --count;
  if (needs_wake) {
    CLEW_CHECK(word.permits > 0, "a futex waiter returns without a wake");
    --word.permits;
  }
  word.permits = std::min(word.permits, word.strict + word.loose);
}

bool FutexTable::Wake(uint64_t addr, uint64_t wanted, uint64_t woken) {
  Word& word = words_[addr];
  const uint64_t asleep = word.strict + word.loose - word.permits;
  const uint64_t surely_asleep =
      word.strict > word.permits ? word.strict - word.permits : 0;
  if (woken > asleep || (woken < wanted && surely_asleep > woken)) {
    return false;
  }
  word.permits += woken;
  return true;
}

uint64_t FutexTable::Digest() const {
  uint64_t digest = 0;
  for (const auto& [addr, word] : words_) {
    if (word.strict + word.loose > 0) {
      digest += MixBits(MixBits(addr) ^ (word.strict << 42) ^
                        (word.loose << 21) ^ word.permits);
    }
  }
  return digest;
}

void FutexTable::WakeOnExit(uint64_t addr) {
  const auto found = words_.find(addr);
  if (found == words_.end()) {
    return;
  }
  Word& word = found->second;
  word.permits = std::min(word.permits + 1, word.strict + word.loose);
}

}  // namespace clew::follower
