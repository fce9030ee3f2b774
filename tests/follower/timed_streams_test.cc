// Goal: the promises of follower/timed_streams.h: times get narrower and stay
// true, blocks are neither lost nor reordered, little is held back, a gap ends
// it, and times that cannot be change nothing.
// Method: property; guest recordings whose true times are known, and random
// scripted streams with random, hostile times. The seed is in every message.
#include "follower/timed_streams.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

#include "common/digest.h"
#include "tests/follower/scripted.h"
#include "tests/support/guest_programs.h"
#include "tests/support/guest_recorder.h"

namespace clew::follower {
namespace {

using clew::test::GuestRecorderOptions;
using clew::test::GuestRecording;

uint64_t FirstSeed() {
  return static_cast<uint64_t>(testing::UnitTest::GetInstance()->random_seed());
}

uint64_t Width(TscInterval time) { return time.hi.as_int() - time.lo.as_int(); }

bool Within(TscInterval inner, TscInterval outer) {
  return outer.lo <= inner.lo && inner.lo <= inner.hi && inner.hi <= outer.hi;
}

// As they are but for the time.
bool SameButTime(StreamBlock a, const StreamBlock& b) {
  a.time = b.time;
  return a == b;
}

// --- Against the truth.

// Checks one thread; adds up the widths before and after.
void CheckThread(const GuestRecording& guest, Tid tid, TimedStreams& timed,
                 const std::vector<StreamBlock>& raw, double& before,
                 double& after) {
  const auto& ticks = guest.truth().ticks.at(tid);
  size_t insn = 0;
  for (const StreamBlock& block : raw) {
    const TscTicks not_before = timed.NotBefore(tid);
    const auto item = timed.Next(tid);
    ASSERT_TRUE(item) << item.error().message;
    ASSERT_TRUE(*item) << "ends early, after instruction " << insn;
    const auto& narrowed = std::get<StreamBlock>(**item);
    ASSERT_TRUE(SameButTime(narrowed, block)) << "instruction " << insn;
    ASSERT_TRUE(Within(narrowed.time, block.time)) << "instruction " << insn;
    ASSERT_LE(not_before, narrowed.time.lo) << "instruction " << insn;
    for (uint32_t i = 0; i < block.insn_count; ++i, ++insn) {
      ASSERT_LE(narrowed.time.lo, ticks[insn]) << "instruction " << insn;
      ASSERT_GE(narrowed.time.hi, ticks[insn]) << "instruction " << insn;
    }
    if (block.is_syscall) {
      ASSERT_EQ(Width(narrowed.time), 0u) << "instruction " << insn;
    }
    before += static_cast<double>(Width(block.time)) * block.insn_count;
    after += static_cast<double>(Width(narrowed.time)) * block.insn_count;
  }
  EXPECT_EQ(insn, ticks.size());
  const auto end = timed.Next(tid);
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_FALSE(*end);
}

TEST(TimedStreamsTest, EveryInstructionStaysInItsNarrowerInterval) {
  const uint64_t first = FirstSeed();
  double before = 0;
  double after = 0;
  for (uint64_t seed = first; seed < first + 20; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    GuestRecorderOptions options;
    options.seed = seed;
    options.merge_blocks = seed % 2 == 0;
    options.window_ticks = uint64_t{64} << seed % 6;
    GuestRecording guest = GuestRecording::Make(
        seed % 3 == 0 ? test::GuestSpinLockCounter : test::GuestMutexCounter,
        20, options);
    auto streams = guest.recording().open_streams();
    auto inputs = guest.recording().open_inputs();
    ASSERT_TRUE(streams && inputs);
    TimedStreams timed(**streams, **inputs, false);
    for (const auto& [tid, raw] : guest.blocks()) {
      SCOPED_TRACE(fmt::format("thread {}", tid));
      CheckThread(guest, tid, timed, raw, before, after);
      if (HasFatalFailure()) {
        return;
      }
    }
  }
  EXPECT_LT(after, 0.9 * before);
}

// --- Against scripts.

class TimedScript final : public ScriptedStreams {
 public:
  using ScriptedStreams::ScriptedStreams;
  TscTicks NotBefore(Tid) override {
    if (!knows_ahead || ahead() == nullptr) {
      return TscTicks(knows_ahead ? ~uint64_t{0} : 0);
    }
    const auto* const block = std::get_if<StreamBlock>(ahead());
    return block == nullptr ? TscTicks(0) : block->time.lo;
  }

  bool knows_ahead = false;
};

StreamBlock Block(uint64_t ip, uint64_t lo, uint64_t hi,
                  bool is_syscall = false) {
  StreamBlock block;
  block.ip = TraceeAddr(ip);
  block.insn_count = 1;
  block.time = {TscTicks(lo), TscTicks(hi)};
  block.is_syscall = is_syscall;
  return block;
}

SyscallInput Call(uint64_t entered, uint64_t left) {
  SyscallInput call;
  call.entered_tsc = TscTicks(entered);
  call.left_tsc = TscTicks(left);
  return call;
}

struct Outcome {
  std::vector<StreamItem> items;
  size_t held_max = 0;
};

// All items; NotBefore must have held of every one that came later.
Outcome Drain(TimedScript& streams, std::vector<InputRecord> records,
              bool ran_at_once = false) {
  ScriptedInputs inputs(std::move(records));
  TimedStreams timed(streams, inputs, ran_at_once);
  Outcome outcome;
  uint64_t not_before = 0;
  while (true) {
    not_before = std::max(not_before, timed.NotBefore(kThread).as_int());
    const auto item = timed.Next(kThread);
    EXPECT_TRUE(item) << item.error().message;
    if (!item || !*item) {
      break;
    }
    if (const auto* const block = std::get_if<StreamBlock>(&**item)) {
      EXPECT_LE(not_before, block->time.lo.as_int())
          << "item " << outcome.items.size();
    }
    outcome.items.push_back(**item);
    outcome.held_max =
        std::max(outcome.held_max, streams.pulled() - outcome.items.size());
  }
  return outcome;
}

std::vector<TscInterval> TimesOf(const std::vector<StreamItem>& items) {
  std::vector<TscInterval> times;
  for (const StreamItem& item : items) {
    if (const auto* const block = std::get_if<StreamBlock>(&item)) {
      times.push_back(block->time);
    }
  }
  return times;
}

TscInterval Time(uint64_t lo, uint64_t hi) {
  return {TscTicks(lo), TscTicks(hi)};
}

TEST(TimedStreamsTest, WhatComesBeforeACallEndsAtItsEntryAndTheRestBehindIt) {
  TimedScript streams({Block(1, 0, 100), Block(2, 10, 110),
                       Block(3, 10, 110, true), Block(4, 10, 110),
                       Block(5, 100, 200)});
  const Outcome outcome = Drain(streams, {SignalInput(), Call(50, 70)});
  EXPECT_EQ(TimesOf(outcome.items),
            (std::vector{Time(0, 50), Time(10, 50), Time(50, 50), Time(70, 110),
                         Time(100, 200)}));
}

TEST(TimedStreamsTest, TimesThatCannotBeChangeNothing) {
  const std::vector<StreamItem> items = {
      Block(1, 20, 100), Block(2, 20, 110, true), Block(3, 20, 110)};
  TimedScript plain(items);
  const auto unchanged = TimesOf(Drain(plain, {}).items);
  EXPECT_EQ(unchanged, TimesOf(items));
  for (const auto& [entered, left] : std::vector<std::pair<uint64_t, uint64_t>>{
           {0, 0}, {0, 50}, {19, 50}, {111, 50}, {~uint64_t{0}, 50}}) {
    SCOPED_TRACE(entered);
    TimedScript streams(items);
    EXPECT_EQ(TimesOf(Drain(streams, {Call(entered, left)}).items), unchanged);
  }
}

TEST(TimedStreamsTest, ALeavingTimeThatCannotBeLeavesTheEntry) {
  for (const uint64_t left : {uint64_t{0}, uint64_t{40}, uint64_t{111}}) {
    SCOPED_TRACE(left);
    TimedScript streams({Block(1, 20, 110, true), Block(2, 20, 110)});
    EXPECT_EQ(TimesOf(Drain(streams, {Call(60, left)}).items),
              (std::vector{Time(60, 60), Time(60, 110)}));
  }
}

TEST(TimedStreamsTest, ACallBeforeTheOneBeforeChangesNothing) {
  TimedScript streams({Block(1, 0, 100, true), Block(2, 0, 100),
                       Block(3, 0, 100, true), Block(4, 0, 100)});
  EXPECT_EQ(
      TimesOf(Drain(streams, {Call(60, 70), Call(30, 40)}).items),
      (std::vector{Time(60, 60), Time(70, 100), Time(70, 100), Time(70, 100)}));
}

// The kernel may do it at any moment of the call, while others run.
TEST(TimedStreamsTest, ACallOfThreadsThatRanAtOnceTakesEffectUntilItIsLeft) {
  SyscallInput forever = Call(150, 0);
  SyscallInput first = Call(50, 70);
  first.result = 0;
  TimedScript streams({Block(1, 0, 100), Block(2, 10, 110, true),
                       Block(3, 10, 110), Block(4, 100, 200, true)});
  EXPECT_EQ(
      TimesOf(Drain(streams, {first, forever}, true).items),
      (std::vector{Time(0, 50), Time(50, 70), Time(70, 110), Time(150, 200)}));
}

// Behind an unknown input it is not known which call is which.
TEST(TimedStreamsTest, CallsBehindAnUnknownInputAreNotUsed) {
  TimedScript streams({Block(1, 0, 100, true), Block(2, 0, 100),
                       Block(3, 0, 100, true), Block(4, 0, 100)});
  const Outcome outcome =
      Drain(streams, {Call(30, 40), UnknownInput(), Call(60, 70)});
  EXPECT_EQ(
      TimesOf(outcome.items),
      (std::vector{Time(30, 30), Time(40, 100), Time(40, 100), Time(40, 100)}));
}

// Behind a gap it is not known which call is which; but it is after those
// before.
TEST(TimedStreamsTest, CallsBehindAGapAreNotUsed) {
  Gap gap;
  gap.detail = "overflow";
  const std::vector<StreamItem> items = {
      Block(1, 0, 100, true), Block(2, 0, 100), gap, Block(3, 0, 100, true),
      Block(4, 0, 100)};
  TimedScript streams(items);
  const Outcome outcome = Drain(streams, {Call(30, 40), Call(60, 70)});
  ASSERT_EQ(outcome.items.size(), items.size());
  EXPECT_TRUE(std::holds_alternative<Gap>(outcome.items[2]));
  EXPECT_EQ(
      TimesOf(outcome.items),
      (std::vector{Time(30, 30), Time(40, 100), Time(40, 100), Time(40, 100)}));
}

TEST(TimedStreamsTest, HoldsNoMoreThanItsLimitWhereTimeStandsStill) {
  std::vector<StreamItem> items;
  for (uint64_t i = 0; i < TimedStreams::kHeldMax + 1000; ++i) {
    items.emplace_back(Block(i, 0, 100));
  }
  items.emplace_back(Block(9, 0, 100, true));
  TimedScript streams(items);
  const Outcome outcome = Drain(streams, {Call(60, 70)});
  EXPECT_EQ(outcome.held_max, TimedStreams::kHeldMax);
  const auto times = TimesOf(outcome.items);
  ASSERT_EQ(times.size(), items.size());
  EXPECT_EQ(times.front(), Time(0, 100));  // let go before the call was seen
  EXPECT_EQ(times[times.size() - 2], Time(0, 60));
}

// A block is handed out once no call can come that narrows it.
TEST(TimedStreamsTest, HoldsOnlyWhatMayStillBeNarrowed) {
  std::vector<StreamItem> items;
  for (uint64_t i = 0; i < 1000; ++i) {
    items.emplace_back(Block(i, i * 10, i * 10 + 50));
  }
  TimedScript streams(items);
  EXPECT_LE(Drain(streams, {}).held_max, 6u);
  // Where the source knows what is ahead, nothing has to be pulled for it.
  for (StreamItem& item : items) {
    auto& time = std::get<StreamBlock>(item).time;
    time.hi = TscTicks(time.lo.as_int() + 10);
  }
  TimedScript knowing(items);
  knowing.knows_ahead = true;
  EXPECT_LE(Drain(knowing, {}).held_max, 1u);
}

// Bounds ascend, as the decoder's do; times of calls are anything.
std::vector<StreamItem> RandomItems(Random& random, size_t& calls) {
  std::vector<StreamItem> items;
  uint64_t lo = 0;
  uint64_t hi = random.Below(50);
  const uint64_t count = random.Below(60);
  for (uint64_t i = 0; i < count; ++i) {
    lo += random.Below(3) == 0 ? random.Below(30) : 0;
    hi = std::max(lo, hi) + (random.Below(3) == 0 ? random.Below(30) : 0);
    const bool is_syscall = random.Below(4) == 0;
    items.emplace_back(Block(i, lo, hi, is_syscall));
    calls += is_syscall ? 1 : 0;
  }
  return items;
}

TEST(TimedStreamsTest, NothingIsLostOrTurnedAroundWhateverTheTimesSay) {
  const uint64_t first = FirstSeed();
  uint64_t narrowed = 0;
  for (uint64_t seed = first; seed < first + 3000; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed);
    size_t calls = 0;
    const auto items = RandomItems(random, calls);
    std::vector<InputRecord> records;
    const size_t recorded = random.Below(4) == 0 ? calls / 2 : calls;
    for (size_t i = 0; i < recorded; ++i) {
      records.push_back(Call(random.Below(400), random.Below(400)));
    }
    TimedScript streams(items);
    streams.knows_ahead = random.Below(2) == 0;
    const Outcome outcome = Drain(streams, records);
    ASSERT_EQ(outcome.items.size(), items.size());
    for (size_t i = 0; i < items.size(); ++i) {
      const auto& raw = std::get<StreamBlock>(items[i]);
      const auto& now = std::get<StreamBlock>(outcome.items[i]);
      ASSERT_TRUE(SameButTime(now, raw)) << "item " << i;
      ASSERT_TRUE(Within(now.time, raw.time)) << "item " << i;
      narrowed += now.time == raw.time ? 0 : 1;
    }
    if (HasFailure()) {
      return;
    }
  }
  EXPECT_GT(narrowed, 1000u);
}

}  // namespace
}  // namespace clew::follower
