// Goal: counting what threads did, and the gaps, needs room for few blocks
// however unevenly threads go on, and gives the same as with room for all.
// Method: random programs on several cores, with and without holes in their
// trace; the truth is what the toy machine executed. Room is a small part of
// what waits when threads are pulled one after another.
#include "decoder/thread_counts.h"

#include <gtest/gtest.h>

#include "decoder/gap_counts.h"
#include "tests/decoder/synthetic.h"

namespace clew::decoder {
namespace {

// Some steps of decoding; a gap is in every slice that it may touch.
uint64_t RoomFor(const PerfTrace& trace) { return 100 + trace.slices().size(); }

SyntheticConfig Config(uint64_t seed, bool overflows) {
  SyntheticConfig config;
  config.seed = seed;
  config.overflows = overflows;
  config.encoder.psb_period_bytes = 512;
  return config;
}

TEST(ThreadCountsTest, ThreadsHaveWhatTheyExecuted) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const auto synthetic = MakeSynthetic(Config(seed, false));
    const auto trace = LoadTrace(*synthetic);
    const auto counts =
        CountThreads(*trace, {.buffered_items_max = RoomFor(*trace)}, nullptr);
    ASSERT_TRUE(counts) << counts.error().message;
    ASSERT_EQ(counts->threads.size(), synthetic->truth.size());
    for (const ThreadCount& thread : counts->threads) {
      EXPECT_EQ(thread.instructions, synthetic->truth.at(thread.thread).size());
      EXPECT_EQ(thread.gaps, 0u);
      EXPECT_GT(thread.slices, 0u);
    }
  }
}

TEST(ThreadCountsTest, LittleRoomGivesTheSameCountsAndGaps) {
  const auto synthetic = MakeSynthetic(Config(2, true));
  const auto trace = LoadTrace(*synthetic);
  DecodeLimits little;
  little.buffered_items_max = RoomFor(*trace);
  const auto all = CountGaps(*trace, Tid(0), {}, nullptr);
  const auto some = CountGaps(*trace, Tid(0), little, nullptr);
  ASSERT_TRUE(all) << all.error().message;
  ASSERT_TRUE(some) << some.error().message;
  EXPECT_FALSE(some->limited);
  EXPECT_GT(some->gaps, 0u);
  EXPECT_EQ(some->gaps, all->gaps);
  EXPECT_EQ(some->instructions, all->instructions);
  const auto counts =
      CountThreads(*trace, {.buffered_items_max = RoomFor(*trace)}, nullptr);
  ASSERT_TRUE(counts) << counts.error().message;
  EXPECT_EQ(counts->stats.gaps, all->gaps);
  EXPECT_EQ(counts->stats.instructions, all->instructions);
  uint64_t of_threads = 0;
  for (const ThreadCount& thread : counts->threads) {
    of_threads += thread.instructions;
  }
  EXPECT_EQ(of_threads, all->instructions);
}

TEST(ThreadCountsTest, ALimitOfInstructionsIsTold) {
  const auto synthetic = MakeSynthetic(Config(3, false));
  const auto trace = LoadTrace(*synthetic);
  DecodeLimits limits;
  limits.instructions_max = 10;
  const auto counts = CountGaps(*trace, Tid(0), limits, nullptr);
  ASSERT_TRUE(counts) << counts.error().message;
  EXPECT_TRUE(counts->limited);
}

}  // namespace
}  // namespace clew::decoder
