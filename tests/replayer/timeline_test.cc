// Goal: both directions of time agree. Method: a toy run is executed forward
// once, an instruction at a time, and everything that a debugger could see is
// written down; the timeline must then show the same at every position it is
// sent to, and stop exactly where the written record says. Seeds are printed.
#include "replayer/timeline.h"

#include <gtest/gtest.h>

#include <cstring>

#include "common/digest.h"
#include "tests/replayer/fake_target.h"

namespace clew::replayer {
namespace {

constexpr size_t kThreads = 3;
constexpr size_t kInsns = 7;

uint64_t Word(const ReplayTarget& target, uint64_t addr) {
  uint64_t word = 0;
  EXPECT_EQ(target.ReadMemory(TraceeAddr(addr),
                              std::as_writable_bytes(std::span(&word, 1))),
            sizeof(word));
  return word;
}

// What can be seen at one position.
struct ToySeen {
  std::vector<uint64_t> rips;
  uint64_t shared = 0;
  bool operator==(const ToySeen&) const = default;
};

ToySeen LookAtToy(const ReplayTarget& target) {
  ToySeen seen;
  for (const TargetThread& thread : target.Threads()) {
    seen.rips.push_back(target.ReadRegisters(thread.tid)->rip);
  }
  seen.shared = Word(target, kToyShared);
  return seen;
}

std::vector<ToySeen> RecordToy(FakeTarget target) {
  std::vector<ToySeen> record = {LookAtToy(target)};
  while (target.position() < target.end()) {
    EXPECT_TRUE(target.Run(target.position() + 1, {}, true).has_value());
    record.push_back(LookAtToy(target));
  }
  return record;
}

FakeTarget Toy(uint64_t seed, size_t runs, uint64_t run_max) {
  return FakeTarget(ToyThreads(kThreads, kInsns),
                    RandomSteps(seed, kThreads, runs, run_max), {});
}

// Whether the instruction at `position` is a reason to stop before it when
// running backwards.
bool StopsBefore(const FakeTarget& target, const std::vector<ToySeen>& record,
                 Position position, const StopPoints& points) {
  const size_t thread =
      static_cast<size_t>(target.ThreadAt(position)->as_int() - 1000);
  const uint64_t rip = record[position].rips[thread];
  if (points.HasBreakpoint(rip)) {
    return true;
  }
  const uint64_t n = (rip - kToyCode) % 0x100 / 4;
  for (const Watchpoint& watch : points.watchpoints()) {
    if ((n == 2 && Wants(watch.kind, AccessKind::kWrite)) ||
        (n == 3 && Wants(watch.kind, AccessKind::kRead))) {
      return true;
    }
  }
  return false;
}

StopPoints RandomPoints(Random& random) {
  StopPoints points;
  if (random.Below(2) == 0) {
    points.AddBreakpoint(kToyCode + 0x100 * random.Below(kThreads) +
                         4 * random.Below(kInsns));
  }
  if (random.Below(2) == 0) {
    points.AddWatchpoint(
        {kToyShared, 8, static_cast<WatchKind>(random.Below(3))});
  }
  return points;
}

TEST(Timeline, SeekShowsWhatTheForwardRunShowed) {
  const uint64_t seed = 11;
  SCOPED_TRACE(seed);
  FakeTarget target = Toy(seed, 300, 20);
  const auto record = RecordToy(target);
  Timeline timeline(target, {.checkpoint_insns = 100, .checkpoints_max = 8});
  Random random(seed);
  for (int i = 0; i < 500; ++i) {
    const Position to = random.Below(target.end() + 1);
    ASSERT_TRUE(timeline.Seek(to).has_value());
    ASSERT_EQ(timeline.position(), to);
    ASSERT_EQ(LookAtToy(target), record[to]) << to;
    ASSERT_LE(timeline.checkpoint_count(), 8u);
  }
}

TEST(Timeline, BackwardsStopsAtTheLastReasonBefore) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    FakeTarget target = Toy(seed, 100, 9);
    const auto record = RecordToy(target);
    Timeline timeline(target, {.checkpoint_insns = 37});
    Random random(seed);
    for (int i = 0; i < 20; ++i) {
      const StopPoints points = RandomPoints(random);
      const Position from = random.Below(target.end() + 1);
      ASSERT_TRUE(timeline.Seek(from).has_value());
      Position wanted = from;
      bool found = false;
      while (wanted > 0 && !found) {
        --wanted;
        found = StopsBefore(target, record, wanted, points);
      }
      const auto stop = timeline.RunBackward(points, {});
      ASSERT_TRUE(stop.has_value());
      ASSERT_EQ(timeline.position(), wanted);
      ASSERT_EQ(stop->cause != StopCause::kBegin, found);
      ASSERT_EQ(LookAtToy(target), record[wanted]);
      if (found) {
        ASSERT_EQ(stop->thread, *target.ThreadAt(wanted));
      }
    }
  }
}

// Running forward and back over the same ground visits the same instructions:
// a watchpoint's write lies between where the two directions stop.
TEST(Timeline, ForwardsVisitsWhatBackwardsVisits) {
  FakeTarget target = Toy(3, 60, 9);
  Timeline timeline(target, {.checkpoint_insns = 50});
  StopPoints points;
  points.AddWatchpoint({kToyShared, 8, WatchKind::kWrite});
  std::vector<Position> forwards;
  while (true) {
    const auto stop = timeline.RunForward(points, std::nullopt, {});
    ASSERT_TRUE(stop.has_value());
    if (stop->cause == StopCause::kEnd) {
      break;
    }
    ASSERT_EQ(stop->cause, StopCause::kWatchpoint);
    forwards.push_back(timeline.position() - 1);
  }
  ASSERT_EQ(forwards.size(), Word(target, kToyShared));
  while (!forwards.empty()) {
    ASSERT_TRUE(timeline.RunBackward(points, {}).has_value());
    ASSERT_EQ(timeline.position(), forwards.back());
    forwards.pop_back();
  }
  EXPECT_EQ(timeline.RunBackward(points, {})->cause, StopCause::kBegin);
}

TEST(Timeline, StepsOfOneThreadGoOverTheOthers) {
  FakeTarget target = Toy(5, 50, 6);
  Timeline timeline(target, {.checkpoint_insns = 40});
  const Tid tid(1001);
  std::vector<Position> before;
  while (const auto next = target.FirstFrom(tid, timeline.position())) {
    before.push_back(*next);
    const auto stop = timeline.RunForward({}, tid, {});
    ASSERT_EQ(stop->cause, StopCause::kStep);
    ASSERT_EQ(timeline.position(), *next + 1);
  }
  while (!before.empty()) {
    ASSERT_EQ(timeline.StepBackward(tid)->cause, StopCause::kStep);
    ASSERT_EQ(timeline.position(), before.back());
    before.pop_back();
  }
  EXPECT_EQ(timeline.StepBackward(tid)->cause, StopCause::kBegin);
  EXPECT_EQ(timeline.position(), 0u);
}

TEST(Timeline, ABreakpointAtTheFirstInstructionCountsUnlessItIsStepped) {
  FakeTarget target = Toy(1, 50, 6);
  Timeline timeline(target);
  StopPoints points;
  const Tid first = *target.ThreadAt(0);
  points.AddBreakpoint(target.ReadRegisters(first)->rip);
  EXPECT_EQ(timeline.RunForward(points, std::nullopt, {})->cause,
            StopCause::kBreakpoint);
  EXPECT_EQ(timeline.position(), 0u);
  EXPECT_EQ(timeline.RunForward(points, first, {})->cause, StopCause::kStep);
  EXPECT_EQ(timeline.position(), 1u);
}

TEST(Timeline, NeighbouringStepsBackAreCheap) {
  FakeTarget target = Toy(9, 20'000, 20);
  ASSERT_GT(target.end(), 150'000u);
  Timeline timeline(target, {.checkpoint_insns = 100'000});
  ASSERT_TRUE(timeline.Seek(target.end()).has_value());
  const uint64_t before = target.work();
  for (int i = 0; i < 200; ++i) {
    const Tid tid = *target.ThreadAt(timeline.position() - 1);
    ASSERT_EQ(timeline.StepBackward(tid)->cause, StopCause::kStep);
  }
  EXPECT_LT((target.work() - before) / 200, 1000u);
}

TEST(Timeline, InterruptStopsBothDirections) {
  FakeTarget target = Toy(9, 60'000, 20);
  ASSERT_GT(target.end(), 500'000u);
  Timeline timeline(target, {.checkpoint_insns = 50'000});
  StopPoints points;
  points.AddBreakpoint(1);
  const auto at_once = [] { return true; };
  EXPECT_EQ(timeline.RunForward(points, std::nullopt, at_once)->cause,
            StopCause::kInterrupted);
  EXPECT_LT(timeline.position(), target.end());
  ASSERT_TRUE(timeline.Seek(target.end()).has_value());
  const auto record = LookAtToy(target);
  EXPECT_EQ(timeline.RunBackward(points, at_once)->cause,
            StopCause::kInterrupted);
  EXPECT_GT(timeline.position(), 0u);
  EXPECT_LT(timeline.position(), target.end());
  ASSERT_TRUE(timeline.Seek(target.end()).has_value());
  EXPECT_EQ(LookAtToy(target), record);
}

TEST(Timeline, OutputIsShownForwardsOnly) {
  struct Sink final : OutputSink {
    void OnOutput(std::span<const std::byte> bytes) override {
      text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
    std::string text;
  };
  auto threads = ToyThreads(1, 4);
  threads[0].program[0].kind = ToyInsn::Kind::kOutput;
  threads[0].program[0].text = "hello\n";
  FakeTarget target(threads, {{.thread = Tid(1000), .until_insn = 8}}, {});
  Timeline timeline(target);
  Sink sink;
  timeline.set_output(&sink);
  ASSERT_TRUE(timeline.RunForward({}, std::nullopt, {}).has_value());
  EXPECT_EQ(sink.text, "hello\nhello\n");
  ASSERT_TRUE(timeline.RunBackward({}, {}).has_value());
  ASSERT_TRUE(timeline.Seek(8).has_value());
  EXPECT_EQ(sink.text, "hello\nhello\n");
}

TEST(Timeline, ADivergenceLeavesTheTimelineWhereItWas) {
  FakeTarget target = Toy(2, 100, 9);
  target.set_diverges_at(200);
  Timeline timeline(target, {.checkpoint_insns = 64});
  ASSERT_TRUE(timeline.Seek(120).has_value());
  const ToySeen here = LookAtToy(target);
  EXPECT_EQ(timeline.RunForward({}, std::nullopt, {}).error().code,
            ErrorCode::kCorruptInput);
  EXPECT_EQ(timeline.position(), 120u);
  EXPECT_FALSE(timeline.Seek(target.end()).has_value());
  EXPECT_EQ(timeline.position(), 120u);
  EXPECT_EQ(LookAtToy(target), here);
}

}  // namespace
}  // namespace clew::replayer
