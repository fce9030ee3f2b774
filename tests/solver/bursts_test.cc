// Goal: a step takes a burst, or up to what is split of it, and never more than
// its limit; bursts are split for a contradiction one way after another, each
// once, and for one do not touch what was split for another. Method: property;
// random contested instructions, seeded. Oracle: a slow reference.
#include "solver/search/bursts.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "common/digest.h"

namespace clew::solver {
namespace {

constexpr uint64_t kInsns = 900;
constexpr uint64_t kStepMax = 300;
constexpr uint64_t kBurstMax = 256;

// Of thread 0. The other one writes all that it reads, at the same time.
void Contest(WordTable& table, const std::set<uint64_t>& insns) {
  for (const uint64_t insn : insns) {
    for (const uint32_t thread : {0u, 1u, 0u}) {
      table.Note({.at = {thread, insn},
                  .word = insn,
                  .kind = thread == 0 ? AccessKind::kRead : AccessKind::kWrite,
                  .lo_tick = 0,
                  .hi_tick = 9});
    }
  }
}

// Where a step from `begin` on ends: instruction by instruction.
uint64_t SlowEndOf(const std::set<uint64_t>& contested,
                   const std::set<uint64_t>& split, uint64_t gap,
                   uint64_t begin) {
  uint64_t last = begin;
  for (uint64_t insn = begin + 1; insn < begin + kStepMax; ++insn) {
    if (!contested.contains(insn)) {
      continue;
    }
    if (insn - last > gap || insn - begin >= kBurstMax ||
        split.contains(begin) || split.contains(insn)) {
      return insn;
    }
    last = insn;
  }
  return begin + kStepMax;
}

TEST(BurstsTest, AStepTakesABurstUpToWhatIsSplit) {
  uint64_t bursts_seen = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed);
    std::set<uint64_t> contested;
    const uint64_t one_in = 1 + random.Below(20);
    for (uint64_t insn = 0; insn < kInsns; ++insn) {
      if (random.Below(one_in) == 0) {
        contested.insert(insn);
      }
    }
    WordTable table(2, 0);
    Contest(table, contested);
    const uint64_t gap = random.Below(12);
    Bursts bursts(2, table, gap);
    std::set<uint64_t> split;
    for (int i = 0; i < 3; ++i) {
      const uint64_t begin = random.Below(kInsns);
      const uint64_t end = begin + random.Below(20);
      bursts.Split({0, 7}, 0, begin, end);
      if (begin < end) {
        split.insert(begin);
        split.insert(contested.lower_bound(begin), contested.lower_bound(end));
      }
    }
    for (uint64_t begin = 0; begin < kInsns; ++begin) {
      const uint64_t end = SlowEndOf(contested, split, gap, begin);
      ASSERT_EQ(bursts.EndOf(0, begin, kStepMax), end) << "from " << begin;
      const auto within = std::distance(contested.upper_bound(begin),
                                        contested.lower_bound(end));
      bursts_seen += within > 0 ? 1 : 0;
    }
  }
  EXPECT_GT(bursts_seen, 1000u);
}

TEST(BurstsTest, WithoutAGapNothingIsSplit) {
  const WordTable table(2, 0);
  Bursts bursts(2, table, 0);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(bursts.NoteContradiction({0, 5}), SplitBursts::kNone);
  }
}

TEST(BurstsTest, AContradictionSplitsOneWayAfterAnother) {
  const WordTable table(2, 0);
  Bursts bursts(2, table, 16);
  constexpr InsnRef kWhy = {0, 50};
  constexpr InsnRef kOther = {1, 60};
  bursts.Split(kOther, 1, 10, 11);
  std::vector<SplitBursts> ways;
  for (uint64_t i = 0; i < 1000; ++i) {
    const SplitBursts way = bursts.NoteContradiction(kWhy);
    if (way != SplitBursts::kNone) {
      const uint64_t insn = 20 + ways.size();
      EXPECT_FALSE(bursts.IsSplit({0, insn - 1})) << "still split as before";
      bursts.Split(kWhy, 0, insn, insn + 1);
      EXPECT_TRUE(bursts.IsSplit({0, insn}));
      ways.push_back(way);
    }
  }
  EXPECT_EQ(ways, (std::vector{SplitBursts::kOwn, SplitBursts::kOthers,
                               SplitBursts::kAll}));
  EXPECT_TRUE(bursts.IsSplit({1, 10})) << "split for another contradiction";
}

}  // namespace
}  // namespace clew::solver
