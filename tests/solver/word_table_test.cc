// Goal: after two passes the table has exactly the accesses as contested that
// conflict, are of different threads and may have happened at the same time,
// in whatever order they were noted; one pass claims nothing else.
// Method: exhaustive over sequences of four accesses of a word; a slow
// reference compares all pairs. Larger random ones meet the limits.
#include "solver/search/word_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "common/digest.h"

namespace clew::solver {
namespace {

struct Interval {
  uint64_t lo;
  uint64_t hi;
};
constexpr std::array kIntervals = {Interval{0, 10}, Interval{5, 25},
                                   Interval{11, 12}, Interval{20, 30},
                                   Interval{40, 50}};
constexpr std::array kAccessKinds = {AccessKind::kRead, AccessKind::kWrite,
                                     AccessKind::kReadModifyWrite};

bool Conflict(const WordAccess& a, const WordAccess& b, uint64_t slack) {
  return a.word == b.word && a.at.thread != b.at.thread &&
         (Writes(a.kind) || Writes(b.kind)) && a.lo_tick <= b.hi_tick + slack &&
         b.lo_tick <= a.hi_tick + slack;
}

bool IsContested(const WordAccess& access, std::span<const WordAccess> all,
                 uint64_t slack) {
  return std::ranges::any_of(all, [&](const WordAccess& other) {
    return Conflict(access, other, slack);
  });
}

bool Has(const WordTable& table, const WordAccess& access) {
  return table.contested(access.at.thread).contains(access.at.insn);
}

std::string Describe(std::span<const WordAccess> accesses) {
  std::string text;
  for (const WordAccess& access : accesses) {
    text += fmt::format("[thread {} kind {} {}..{}]", access.at.thread,
                        static_cast<int>(access.kind), access.lo_tick,
                        access.hi_tick);
  }
  return text;
}

// Two passes over one word; counts contested accesses.
void CheckWord(WordTable& table, std::span<const WordAccess> accesses,
               uint64_t slack, uint64_t& contested) {
  for (int pass = 0; pass < 2; ++pass) {
    for (const WordAccess& access : accesses) {
      table.Note(access);
    }
    for (const WordAccess& access : accesses) {
      const bool wanted = IsContested(access, accesses, slack);
      ASSERT_TRUE(wanted || !Has(table, access))
          << Describe(accesses) << " slack " << slack;
      if (pass == 1) {
        ASSERT_EQ(Has(table, access), wanted)
            << Describe(accesses) << " slack " << slack;
        contested += wanted ? 1 : 0;
      }
    }
  }
  ASSERT_EQ(table.IsContestedWord(accesses[0].word),
            std::ranges::any_of(accesses, [&](const WordAccess& access) {
              return IsContested(access, accesses, slack);
            }));
}

// Every sequence is of a word and instructions of its own, so that many share
// one table.
TEST(WordTableTest, TwoPassesInAnyOrderFindExactlyWhatIsContested) {
  constexpr uint64_t kThreads = 2;
  constexpr uint64_t kChoices = kThreads * 2 * kIntervals.size();
  constexpr uint64_t kSequences = kChoices * kChoices * kChoices * kChoices;
  constexpr uint64_t kPerTable = 20'000;
  for (const uint64_t slack : {0u, 1u}) {
    uint64_t contested = 0;
    for (uint64_t first = 0; first < kSequences; first += kPerTable) {
      WordTable table(kThreads, slack);
      const uint64_t end = std::min(first + kPerTable, kSequences);
      for (uint64_t number = first; number < end; ++number) {
        std::array<WordAccess, 4> accesses;
        uint64_t rest = number;
        for (size_t i = 0; i < accesses.size(); ++i, rest /= kChoices) {
          const uint64_t choice = rest % kChoices;
          const Interval time = kIntervals[choice / (2 * kThreads)];
          accesses[i] = {
              .at = {static_cast<uint32_t>(choice % kThreads), number * 4 + i},
              .word = number,
              .kind = kAccessKinds[choice / kThreads % 2],
              .lo_tick = time.lo,
              .hi_tick = time.hi};
        }
        CheckWord(table, accesses, slack, contested);
        if (HasFatalFailure()) {
          return;
        }
      }
    }
    EXPECT_GT(contested, kSequences);
  }
}

std::vector<WordAccess> RandomAccesses(Random& random, size_t count,
                                       uint64_t word, uint64_t insn) {
  std::vector<WordAccess> accesses;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t lo = random.Below(200);
    accesses.push_back(
        {.at = {static_cast<uint32_t>(random.Below(4)), insn + i},
         .word = word,
         .kind = kAccessKinds[random.Below(kAccessKinds.size())],
         .lo_tick = lo,
         .hi_tick = lo + random.Below(40)});
  }
  return accesses;
}

TEST(WordTableTest, SoItIsWithMoreThreadsAndAccesses) {
  const auto seed =
      static_cast<uint64_t>(testing::UnitTest::GetInstance()->random_seed());
  SCOPED_TRACE(fmt::format("seed {}", seed));
  Random random(seed);
  WordTable table(4, 3);
  uint64_t contested = 0;
  for (uint64_t word = 0; word < 2000; ++word) {
    const auto accesses =
        RandomAccesses(random, 1 + random.Below(40), word, word * 100);
    CheckWord(table, accesses, 3, contested);
    if (HasFatalFailure()) {
      return;
    }
  }
  EXPECT_GT(contested, 1000u);
}

// Beyond a limit something may be missed, which is counted; nothing is made up.
TEST(WordTableTest, BeyondItsLimitsItMissesAndSaysSo) {
  for (const WordTableLimits& limits :
       {WordTableLimits{.words_max = 50}, WordTableLimits{.kept_max = 500}}) {
    Random random(5);
    WordTable table(4, 0, limits);
    uint64_t contested = 0;
    uint64_t missed = 0;
    for (uint64_t word = 0; word < 100; ++word) {
      const auto accesses = RandomAccesses(random, 60, word, word * 100);
      for (int pass = 0; pass < 2; ++pass) {
        for (const WordAccess& access : accesses) {
          table.Note(access);
        }
      }
      for (const WordAccess& access : accesses) {
        const bool wanted = IsContested(access, accesses, 0);
        ASSERT_TRUE(wanted || !Has(table, access));
        contested += wanted && Has(table, access) ? 1 : 0;
        missed += wanted && !Has(table, access) ? 1 : 0;
      }
    }
    EXPECT_GT(contested, 100u);
    EXPECT_GT(missed, 100u);
    EXPECT_GE(table.accesses_dropped(), missed);
  }
}

// A loop that polls a flag reads it thousands of times between two timing
// packets; each read is a place where the other thread may write it.
TEST(WordTableTest, APolledWordHasAllItsReadsContested) {
  constexpr uint64_t kPolls = 5000;
  WordTable table(2, 0);
  const auto note = [&](uint32_t thread, uint64_t insn, AccessKind kind) {
    table.Note({.at = {thread, insn},
                .word = 7,
                .kind = kind,
                .lo_tick = 0,
                .hi_tick = 4096});
  };
  for (int pass = 0; pass < 2; ++pass) {
    for (uint64_t insn = 0; insn < kPolls; ++insn) {
      note(0, insn, AccessKind::kRead);
    }
    note(1, 0, AccessKind::kWrite);
  }
  EXPECT_EQ(table.contested(0).size(), kPolls);
  EXPECT_EQ(table.contested(1).size(), 1u);
  EXPECT_EQ(table.accesses_dropped(), 0u);
}

TEST(WordTableTest, LearnedGrowsWithWhatIsSharedAndContestedAlone) {
  WordTable table(2, 0);
  const auto note = [&](uint32_t thread, uint64_t insn) {
    table.Note({.at = {thread, insn},
                .word = 7,
                .kind = AccessKind::kWrite,
                .lo_tick = 0,
                .hi_tick = 9});
    return table.learned();
  };
  EXPECT_EQ(note(0, 1), 0u);
  EXPECT_EQ(note(1, 1), 1u);  // shared
  EXPECT_EQ(note(0, 1), 3u);  // both contested
  EXPECT_EQ(note(1, 1), 3u);
  EXPECT_EQ(note(0, 2), 4u);
  EXPECT_EQ(note(0, 2), 4u);
}

TEST(WordTableTest, SharedIsWhatTwoTouchAndOneWrites) {
  WordTable table(3, 0);
  const auto note = [&](uint32_t thread, uint64_t word, AccessKind kind) {
    return table.Note({.at = {thread, 0},
                       .word = word,
                       .kind = kind,
                       .lo_tick = 0,
                       .hi_tick = 1});
  };
  EXPECT_FALSE(note(0, 1, AccessKind::kRead));
  EXPECT_FALSE(note(1, 1, AccessKind::kRead));
  EXPECT_TRUE(note(2, 1, AccessKind::kWrite));
  EXPECT_FALSE(note(0, 2, AccessKind::kWrite));
  EXPECT_FALSE(note(0, 2, AccessKind::kReadModifyWrite));
  EXPECT_TRUE(note(1, 2, AccessKind::kRead));
}

TEST(WordTableTest, TheNextContestedInstructionIsTheFirstFromThere) {
  WordTable table(2, 0);
  for (const uint64_t insn : {10u, 20u}) {
    for (const uint32_t thread : {0u, 1u}) {
      table.Note({.at = {thread, insn},
                  .word = insn,
                  .kind = AccessKind::kWrite,
                  .lo_tick = 0,
                  .hi_tick = 9});
    }
    table.Note({.at = {0, insn},
                .word = insn,
                .kind = AccessKind::kWrite,
                .lo_tick = 0,
                .hi_tick = 9});
  }
  EXPECT_EQ(table.NextContested(0, 0), 10u);
  EXPECT_EQ(table.NextContested(0, 10), 10u);
  EXPECT_EQ(table.NextContested(0, 11), 20u);
  EXPECT_EQ(table.NextContested(0, 21), ~uint64_t{0});
  EXPECT_EQ(table.contested_count(), 4u);
}

}  // namespace
}  // namespace clew::solver
