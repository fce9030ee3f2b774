// Goal: no work is left lying, none is looked for without end, and trouble is
// met with patience. Method: workers of the test's own, many wakes from many
// threads.
#include "collector/jobs/worker_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "common/check.h"
#include "tests/support/wait_until.h"

namespace clew::collector {
namespace {

using Clock = std::chrono::steady_clock;

std::unique_ptr<WorkerPool> MakePool(double retry_s = 0.001) {
  auto pool = WorkerPool::Make(retry_s, 8 * retry_s);
  CLEW_CHECK(pool.has_value(), "{}", pool.error().message);
  return std::move(*pool);
}

// Takes one of `items`, if there are any.
Found TakeOne(std::atomic<int>& items) {
  int left = items;
  while (left > 0 && !items.compare_exchange_weak(left, left - 1)) {
  }
  return left > 0 ? Found::kWork : Found::kNothing;
}

TEST(WorkerPoolTest, WhatIsAddedBeforeAWakeIsDoneBeforeItIsIdle) {
  std::atomic<int> items = 100;
  const auto pool = MakePool();
  for (int i = 0; i < 3; ++i) {
    pool->Add([&] { return TakeOne(items); });
  }
  for (int round = 0; round < 300; ++round) {
    items += 2;
    pool->Wake();
    ASSERT_TRUE(pool->WaitIdle(test::kWaitMax_s));
    ASSERT_EQ(items, 0) << "round " << round;
  }
}

TEST(WorkerPoolTest, NoWakeOfManyThreadsIsLost) {
  std::atomic<int> items = 0;
  const auto pool = MakePool();
  for (int i = 0; i < 2; ++i) {
    pool->Add([&] { return TakeOne(items); });
  }
  std::vector<std::thread> givers;
  for (int i = 0; i < 4; ++i) {
    givers.emplace_back([&] {
      for (int n = 0; n < 500; ++n) {
        ++items;
        pool->Wake();
      }
    });
  }
  for (std::thread& giver : givers) {
    giver.join();
  }
  EXPECT_TRUE(pool->WaitIdle(test::kWaitMax_s));
  EXPECT_EQ(items, 0);
}

TEST(WorkerPoolTest, WithoutWorkItLooksOnceAWake) {
  std::atomic<int> looks = 0;
  const auto pool = MakePool();
  pool->Add([&] {
    ++looks;
    return Found::kNothing;
  });
  for (int wakes = 1; wakes <= 5; ++wakes) {
    ASSERT_TRUE(pool->WaitIdle(test::kWaitMax_s));
    EXPECT_EQ(looks, wakes);
    pool->Wake();
  }
}

// A wake between the look and the wait, as certainly as it gets.
TEST(WorkerPoolTest, AWakeDuringALookIsALookMore) {
  std::atomic<int> looks = 0;
  const auto pool = MakePool();
  pool->Add([&] {
    if (++looks <= 3) {
      pool->Wake();
    }
    return Found::kNothing;
  });
  EXPECT_TRUE(pool->WaitIdle(test::kWaitMax_s));
  EXPECT_EQ(looks, 4);
}

// 10, 20, 40, 80, 80 ms.
TEST(WorkerPoolTest, AfterTroubleItWaitsLongerEachTime) {
  int looks = 0;
  const auto begin = Clock::now();
  const auto pool = MakePool(0.01);
  pool->Add([&] { return ++looks <= 5 ? Found::kTrouble : Found::kNothing; });
  EXPECT_TRUE(pool->WaitIdle(test::kWaitMax_s));
  EXPECT_EQ(looks, 6);
  EXPECT_GE(Clock::now() - begin, std::chrono::milliseconds(230));
}

// Each wait of trouble is at least 1000 s: a Stop that sat one out would not
// come back.
TEST(WorkerPoolTest, StopEndsEveryWaitAndRetry) {
  const auto pool = MakePool(1000);
  pool->Add([] { return Found::kTrouble; });
  pool->Add([] { return Found::kNothing; });
  std::atomic<int> attempts = 0;
  pool->Add([&] {
    pool->Retry([&] {
      ++attempts;
      return false;
    });
    return Found::kNothing;
  });
  EXPECT_TRUE(clew::test::WaitUntil([&] { return attempts > 0; }));
  EXPECT_FALSE(pool->WaitIdle(0.01));
  pool->Stop();
  pool->Stop();
  // Nothing is given up without having been tried.
  EXPECT_TRUE(pool->stopping());
  const int before = attempts;
  pool->Retry([&] {
    ++attempts;
    return false;
  });
  EXPECT_EQ(attempts, before + 1);
}

}  // namespace
}  // namespace clew::collector
