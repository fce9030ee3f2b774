// Goal: the index says of every position what the schedule says. Method:
// against the schedule written out one instruction at a time, on random
// schedules (seeds printed).
#include "replayer/schedule_index.h"

#include <gtest/gtest.h>

#include "tests/replayer/fake_target.h"

namespace clew::replayer {
namespace {

TEST(ScheduleIndex, AgreesWithTheScheduleWrittenOut) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    const auto steps = RandomSteps(seed, 4, 30, 5);
    std::vector<Tid> flat;
    std::vector<uint64_t> insn;
    std::map<Tid, uint64_t> retired;
    for (const ScheduleStep& step : steps) {
      while (retired[step.thread] < step.until_insn) {
        flat.push_back(step.thread);
        insn.push_back(retired[step.thread]++);
      }
    }
    const auto index = ScheduleIndex::Create(steps);
    ASSERT_TRUE(index.has_value());
    ASSERT_EQ(index->end(), flat.size());
    for (uint64_t p = 0; p < flat.size(); ++p) {
      ASSERT_EQ(index->At(p)->thread, flat[p]);
      ASSERT_EQ(index->At(p)->thread_insn, insn[p]);
      for (const auto& [tid, count] : retired) {
        std::optional<uint64_t> last;
        std::optional<uint64_t> next;
        for (uint64_t q = 0; q < flat.size(); ++q) {
          if (flat[q] == tid && q < p) {
            last = q;
          }
          if (flat[q] == tid && q >= p && !next) {
            next = q;
          }
        }
        ASSERT_EQ(index->LastBefore(tid, p), last);
        ASSERT_EQ(index->FirstFrom(tid, p), next);
      }
    }
    EXPECT_FALSE(index->At(flat.size()).has_value());
  }
}

TEST(ScheduleIndex, FlushesAndEmptyRunsTakeNoTime) {
  const auto index = ScheduleIndex::Create(
      {{.thread = Tid(1), .until_insn = 2},
       {.kind = ScheduleStep::Kind::kFlush, .thread = Tid(2), .until_insn = 9},
       {.thread = Tid(1), .until_insn = 2},
       {.thread = Tid(2), .until_insn = 1}});
  ASSERT_TRUE(index.has_value());
  EXPECT_EQ(index->end(), 3u);
  EXPECT_EQ(index->At(2)->thread, Tid(2));
}

TEST(ScheduleIndex, AStepThatGoesBackIsRefused) {
  const auto index =
      ScheduleIndex::Create({{.thread = Tid(7), .until_insn = 5},
                             {.thread = Tid(7), .until_insn = 4}});
  ASSERT_FALSE(index.has_value());
  EXPECT_EQ(index.error().code, ErrorCode::kCorruptInput);
  EXPECT_EQ(index.error().message,
            "schedule.pb: step 1: thread 7 runs until instruction 4, wanted 5 "
            "or more, which it retired before");
}

TEST(ScheduleIndex, AnEmptyScheduleHasNothing) {
  const auto index = ScheduleIndex::Create({});
  EXPECT_EQ(index->end(), 0u);
  EXPECT_FALSE(index->At(0).has_value());
  EXPECT_FALSE(index->LastBefore(Tid(1), 0).has_value());
}

}  // namespace
}  // namespace clew::replayer
