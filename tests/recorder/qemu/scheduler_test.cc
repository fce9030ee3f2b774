// Goal: the scheduler gives the same decisions for the same seed, runs every
// thread that is able to run, lets cores take turns in quanta of the stated
// size, and gives up a thread only when another waits.
// Method: random calls against a simple account of who may run.
#include "recorder/qemu/scheduler.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "common/check.h"

namespace clew::recorder {
namespace {

SchedulerConfig Config(uint64_t seed) {
  return {.cores = 3,
          .quantum_insns = 100,
          .slice_min_ticks = 1000,
          .slice_max_ticks = 3000,
          .seed = seed};
}

struct Step {
  uint32_t thread;
  uint32_t core;
  uint64_t insns;
  bool operator==(const Step&) const = default;
};

// REQUIRES: a thread is able to run.
Scheduler::Turn NextTurn(Scheduler& scheduler, uint64_t now_ticks) {
  const auto turn = scheduler.Next(now_ticks);
  CLEW_CHECK(turn, "no turn");
  return *turn;
}

// Runs `threads` threads for 2000 turns; now and then one blocks or wakes.
std::vector<Step> Decide(uint64_t seed, uint32_t threads) {
  Scheduler scheduler(Config(seed));
  Random choices(99);
  std::set<uint32_t> blocked;
  for (uint32_t i = 0; i < threads; ++i) {
    scheduler.Ready(i);
  }
  std::vector<Step> steps;
  uint64_t now = 0;
  for (int i = 0; i < 2000; ++i) {
    const auto turn = scheduler.Next(now);
    EXPECT_EQ(turn.has_value(), blocked.size() < threads);
    if (turn.has_value()) {
      EXPECT_FALSE(blocked.contains(turn->thread));
      steps.push_back({turn->thread, turn->core, turn->insns});
      now += turn->insns;
      if (choices.Below(10) == 0) {
        scheduler.Leave(turn->thread);
        blocked.insert(turn->thread);
      } else if (scheduler.SliceOver(turn->thread, now)) {
        scheduler.Preempt(turn->thread);
      }
    }
    if (!blocked.empty() && choices.Below(4) == 0) {
      scheduler.Ready(*blocked.begin());
      blocked.erase(blocked.begin());
    }
  }
  return steps;
}

TEST(SchedulerTest, TheSameSeedGivesTheSameDecisions) {
  EXPECT_EQ(Decide(1, 5), Decide(1, 5));
  EXPECT_NE(Decide(1, 5), Decide(2, 5));
}

// The mean of the turns of two threads at that time.
double MeanInsnsAt(uint64_t now_ticks) {
  constexpr int kTurns = 4000;
  Scheduler scheduler(Config(3));
  scheduler.Ready(0);
  scheduler.Ready(1);
  uint64_t insns = 0;
  for (int i = 0; i < kTurns; ++i) {
    insns += NextTurn(scheduler, now_ticks).insns;
  }
  return static_cast<double>(insns) / kTurns;
}

TEST(SchedulerTest, QuantaGrowWithTheRunUpToALimit) {
  constexpr uint64_t kSteady = SchedulerConfig::kSteadyTicks;
  for (const auto& [now, mean] :
       {std::pair(uint64_t{0}, 100.0), std::pair(2 * kSteady - 1, 100.0),
        std::pair(2 * kSteady, 200.0), std::pair(10 * kSteady, 1000.0),
        std::pair(1000 * kSteady, 6400.0)}) {
    EXPECT_NEAR(MeanInsnsAt(now), mean, mean / 20) << now;
  }
}

TEST(SchedulerTest, EveryThreadRunsAndQuantaKeepTheirBounds) {
  std::map<uint32_t, uint64_t> insns;
  for (const Step& step : Decide(7, 5)) {
    EXPECT_GE(step.insns, 1u);
    EXPECT_LE(step.insns, 199u);
    EXPECT_LT(step.core, 3u);
    insns[step.thread] += step.insns;
  }
  EXPECT_EQ(insns.size(), 5u);
}

TEST(SchedulerTest, NoCoreHasTwoTurnsInARowWhileAnotherHasAThread) {
  Scheduler scheduler(Config(3));
  scheduler.Ready(0);
  scheduler.Ready(1);
  uint32_t last = NextTurn(scheduler, 0).core;
  for (int i = 1; i < 100; ++i) {
    const uint32_t core = NextTurn(scheduler, 0).core;
    ASSERT_NE(core, last) << i;
    last = core;
  }
}

TEST(SchedulerTest, ASliceEndsOnlyWhereAnotherWaitsOrMayMigrate) {
  SchedulerConfig config = Config(1);
  config.cores = 1;
  Scheduler scheduler(config);
  scheduler.Ready(0);
  ASSERT_EQ(NextTurn(scheduler, 0).thread, 0u);
  EXPECT_FALSE(scheduler.SliceOver(0, 1'000'000));
  scheduler.Ready(1);
  EXPECT_FALSE(scheduler.SliceOver(0, 1'000'001)) << "it just got a new slice";
  EXPECT_TRUE(scheduler.SliceOver(0, 2'000'000));
  scheduler.Preempt(0);
  EXPECT_EQ(NextTurn(scheduler, 2'000'000).thread, 1u);
}

}  // namespace
}  // namespace clew::recorder
