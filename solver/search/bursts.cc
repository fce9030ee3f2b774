#include "solver/search/bursts.h"

#include <algorithm>

namespace clew::solver {
namespace {

// After so many contradictions at one instruction.
constexpr uint64_t kSplitsOwn = 4;
constexpr uint64_t kSplitsOthers = 16;
constexpr uint64_t kSplitsAll = 64;

// A loop that polls a word is no burst as long as the loop runs.
constexpr uint64_t kBurstInsnsMax = 256;

}  // namespace

uint64_t Bursts::EndOf(uint32_t thread, uint64_t begin,
                       uint64_t insns_max) const {
  uint64_t last = begin;
  uint64_t next = table_.NextContested(thread, begin + 1);
  const bool is_split = IsSplit({thread, begin});
  while (!is_split && next - last <= gap_insns_ &&
         next - begin < kBurstInsnsMax && !IsSplit({thread, next})) {
    last = next;
    next = table_.NextContested(thread, next + 1);
  }
  return std::min(next, begin + insns_max);
}

SplitBursts Bursts::NoteContradiction(InsnRef why) {
  if (gap_insns_ == 0) {
    return SplitBursts::kNone;
  }
  const uint64_t times = ++contradictions_[why];
  const SplitBursts whose = times == kSplitsOwn      ? SplitBursts::kOwn
                            : times == kSplitsOthers ? SplitBursts::kOthers
                            : times == kSplitsAll    ? SplitBursts::kAll
                                                     : SplitBursts::kNone;
  if (whose != SplitBursts::kNone) {
    for (auto& insns : split_) {
      std::erase_if(insns, [why](const auto& s) { return s.second == why; });
    }
  }
  return whose;
}

void Bursts::Split(InsnRef why, uint32_t thread, uint64_t begin, uint64_t end) {
  for (uint64_t insn = begin; insn < end;
       insn = table_.NextContested(thread, insn + 1)) {
    split_[thread].try_emplace(insn, why);
  }
}

}  // namespace clew::solver
