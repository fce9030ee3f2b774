// Goal: the cycle of a deadlock is found, whatever kind its edges are, and
// nothing is called one that is none. Method: hand-picked cases of each edge;
// rings of locks of each length among threads that only wait for them.
#include "solver/wait_cycle.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace clew::solver {
namespace {

using For = WaitingThread::For;
using Threads = std::vector<WaitingThread>;

HeldLock Held(uint64_t addr, bool shared = false) {
  return {.addr = addr, .shared = shared, .site = {}};
}

WaitingThread Waits(int tid, For what, uint64_t addr,
                    std::vector<HeldLock> held = {}) {
  return {
      .thread = Tid(tid), .what = what, .addr = addr, .held = std::move(held)};
}

WaitingThread Joins(int tid, int other, std::vector<HeldLock> held = {}) {
  WaitingThread thread = Waits(tid, For::kThread, 99, std::move(held));
  thread.joined = Tid(other);
  return thread;
}

std::vector<int> CycleOf(Threads threads) {
  OrderByCycle(threads);
  std::vector<int> cycle;
  for (const WaitingThread& thread : threads) {
    if (thread.in_cycle) {
      cycle.push_back(thread.thread.as_int());
    }
  }
  return cycle;
}

TEST(WaitCycleTest, ARingOfLocksIsOneWhateverStandsAroundIt) {
  for (int length = 1; length <= 6; ++length) {
    Threads threads = {Joins(1, 2)};
    for (int i = 0; i < length; ++i) {
      threads.push_back(
          Waits(2 + i, For::kLock, 100 + (i + 1) % length, {Held(100 + i)}));
    }
    threads.push_back(Waits(50, For::kLock, 100, {Held(500)}));
    threads.push_back(Waits(51, For::kUnknown, 600));
    std::vector<int> wanted;
    for (int i = 0; i < length; ++i) {
      wanted.push_back(2 + i);
    }
    const auto cycle = CycleOf(threads);
    EXPECT_EQ(cycle, wanted);
    OrderByCycle(threads);
    EXPECT_EQ(threads.size(), static_cast<size_t>(length) + 3);
    EXPECT_EQ(threads[0].thread, Tid(2));  // before the one that joins it
  }
}

TEST(WaitCycleTest, AChainIsNone) {
  EXPECT_TRUE(
      CycleOf({Waits(1, For::kLock, 10), Waits(2, For::kLock, 20, {Held(10)}),
               Waits(3, For::kCondition, 30, {Held(40)})})
          .empty());
}

TEST(WaitCycleTest, AReaderIsKeptByWritersAlone) {
  // Held for reading, and wanted so by another: nobody is kept.
  EXPECT_TRUE(CycleOf({Waits(1, For::kReadLock, 10, {Held(10, true)}),
                       Waits(2, For::kReadLock, 10, {Held(10, true)})})
                  .empty());
  // A writer that waits comes before a reader that comes again.
  EXPECT_EQ(CycleOf({Waits(1, For::kReadLock, 10, {Held(10, true)}),
                     Waits(2, For::kLock, 10)}),
            (std::vector{1, 2}));
  // A reader that wants to write waits for itself.
  EXPECT_EQ(CycleOf({Waits(1, For::kLock, 10, {Held(10, true)})}),
            (std::vector{1}));
  EXPECT_EQ(CycleOf({Waits(1, For::kReadLock, 10, {Held(20)}),
                     Waits(2, For::kLock, 20, {Held(10)})}),
            (std::vector{1, 2}));
}

TEST(WaitCycleTest, AJoinWaitsForItsThread) {
  EXPECT_EQ(CycleOf({Joins(1, 2, {Held(10)}), Waits(2, For::kLock, 10)}),
            (std::vector{1, 2}));
  EXPECT_TRUE(CycleOf({Joins(1, 2), Waits(2, For::kLock, 10)}).empty());
}

TEST(WaitCycleTest, AConditionIsWaitedForByWhoKeepsItsSender) {
  EXPECT_EQ(CycleOf({Waits(1, For::kCondition, 30, {Held(10)}),
                     Waits(2, For::kLock, 10)}),
            (std::vector{1, 2}));
  // A cycle of locks is the cause, where there is one.
  EXPECT_EQ(
      CycleOf({Waits(1, For::kCondition, 30, {Held(10)}),
               Waits(2, For::kLock, 10), Waits(3, For::kLock, 40, {Held(50)}),
               Waits(4, For::kLock, 50, {Held(40)})}),
      (std::vector{3, 4}));
}

}  // namespace
}  // namespace clew::solver
