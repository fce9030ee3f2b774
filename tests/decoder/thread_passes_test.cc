// Goal: however few blocks may wait, every thread's stream comes whole and the
// same, what was decoded is counted once, and no more blocks wait than may.
// Method: property; random programs on several cores, with and without holes in
// their trace, pulled with room for everything (one pass, the oracle) and with
// less and less room. The seed is in every message.
#include "decoder/thread_passes.h"

#include <gtest/gtest.h>

#include <map>

#include "common/digest.h"
#include "tests/decoder/synthetic.h"

namespace clew::decoder {
namespace {

// What one step of decoding may add: a block, or a gap in every slice.
uint64_t StepItemsMax(const PerfTrace& trace) {
  return 1 + trace.slices().size();
}

// An item as text. Where blocks are split may differ between passes (libipt's
// block cache), so blocks are told by their instructions.
void AppendText(TraceStreams& streams, const StreamItem& item,
                std::vector<std::string>& texts) {
  if (const auto* gap = std::get_if<Gap>(&item)) {
    texts.push_back(fmt::format("gap {} {} {} [{},{}] {}", gap->slice,
                                gap->aux_offset, gap->bytes, gap->time.lo,
                                gap->time.hi, gap->detail));
    return;
  }
  const auto& block = std::get<StreamBlock>(item);
  const Status walked =
      streams.ForEachInstruction(block, [&](const WalkedInsn& insn) {
        texts.push_back(fmt::format("{} {:#x}", block.slice, insn.ip));
      });
  EXPECT_TRUE(walked) << walked.error().message;
}

std::vector<std::string> PullAll(TraceStreams& streams, Tid thread) {
  std::vector<std::string> texts;
  while (true) {
    auto item = streams.Next(thread);
    if (!item) {
      ADD_FAILURE() << item.error().message;
      return texts;
    }
    const std::optional<StreamItem>& next = *item;
    if (!next) {
      return texts;
    }
    AppendText(streams, *next, texts);
  }
}

struct Pulled {
  std::map<Tid, std::vector<std::string>> threads;
  StreamStats stats;
  uint64_t passes = 0;
};

Pulled PullPasses(const PerfTrace& trace, uint64_t waiting_max) {
  Pulled pulled;
  auto passes =
      ThreadPasses::Create(trace, {.buffered_items_max = waiting_max});
  EXPECT_TRUE(passes) << passes.error().message;
  for (const Tid thread : passes->threads()) {
    auto streams = passes->For(thread);
    EXPECT_TRUE(streams) << streams.error().message;
    pulled.threads[thread] = PullAll(**streams, thread);
  }
  pulled.stats = passes->stats();
  pulled.passes = passes->passes();
  return pulled;
}

void ExpectSameCounts(const StreamStats& a, const StreamStats& b) {
  EXPECT_EQ(a.instructions, b.instructions);
  EXPECT_EQ(a.gaps, b.gaps);
  EXPECT_EQ(a.gap_bytes, b.gap_bytes);
  EXPECT_EQ(a.instructions_without_thread, b.instructions_without_thread);
  EXPECT_EQ(a.tsc_backwards, b.tsc_backwards);
}

TEST(ThreadPassesTest, LittleRoomGivesTheSameStreamsWithinIt) {
  uint64_t most_passes = 0;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    SyntheticConfig config;
    config.seed = seed;
    config.insns = 20000;
    config.overflows = seed % 2 == 0;
    config.encoder.psb_period_bytes = 512;
    const auto synthetic = MakeSynthetic(config);
    const auto trace = LoadTrace(*synthetic);
    const Pulled all = PullPasses(*trace, uint64_t{1} << 24);
    EXPECT_EQ(all.passes, 1u);
    EXPECT_EQ(all.stats.gaps > 0, config.overflows);
    ASSERT_GT(all.stats.buffered_items_peak, 1000u) << "all would fit anyway";
    for (const uint64_t room : {1000u, 500u, 200u}) {
      SCOPED_TRACE(fmt::format("room for {}", room));
      const Pulled some = PullPasses(*trace, room);
      EXPECT_EQ(some.threads, all.threads);
      ExpectSameCounts(some.stats, all.stats);
      EXPECT_LE(some.stats.buffered_items_peak, room + StepItemsMax(*trace));
      EXPECT_LE(some.passes, all.threads.size());
      most_passes = std::max(most_passes, some.passes);
    }
  }
  EXPECT_GT(most_passes, 2u);
}

// The bound does not grow with the trace: the longer one needs no more room.
TEST(ThreadPassesTest, TheRoomDoesNotGrowWithTheTrace) {
  for (const uint64_t insns : {20'000u, 200'000u}) {
    SyntheticConfig config;
    config.insns = insns;
    const auto synthetic = MakeSynthetic(config);
    const auto trace = LoadTrace(*synthetic);
    const Pulled pulled = PullPasses(*trace, 300);
    EXPECT_LE(pulled.stats.buffered_items_peak, 300 + StepItemsMax(*trace));
    uint64_t insns_pulled = 0;
    for (const auto& [thread, texts] : pulled.threads) {
      insns_pulled += texts.size();
      EXPECT_EQ(texts.size(), synthetic->truth.at(thread).size());
    }
    EXPECT_EQ(pulled.stats.instructions, insns_pulled);
  }
}

TEST(ThreadPassesTest, OneChosenThreadNeedsRoomForNoOther) {
  const auto synthetic = MakeSynthetic({});
  const auto trace = LoadTrace(*synthetic);
  const Pulled all = PullPasses(*trace, uint64_t{1} << 24);
  for (const auto& [thread, texts] : all.threads) {
    auto streams = TraceStreams::Create(
        *trace, {.buffered_items_max = 300, .threads = {thread}});
    ASSERT_TRUE(streams) << streams.error().message;
    EXPECT_TRUE((*streams)->Keeps(thread));
    EXPECT_EQ(PullAll(**streams, thread), texts);
    EXPECT_LE((*streams)->stats().buffered_items_peak, 300u);
    const Tid other = thread == all.threads.begin()->first
                          ? all.threads.rbegin()->first
                          : all.threads.begin()->first;
    EXPECT_FALSE((*streams)->Keeps(other));
    const auto refused = (*streams)->Next(other);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace clew::decoder
