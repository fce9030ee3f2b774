// Goal: FutexTable accepts every result that a kernel can produce, and refuses
// counts that no kernel can.
// Method: property, random executions (printed seed) of a reference kernel that
// knows each sleeper by name; then the refusals by hand.
#include "follower/kernel/futex.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "common/digest.h"

namespace clew::follower {
namespace {

constexpr uint64_t kWord = 0x1000;

// A thread's futex wait, as the reference kernel sees it.
struct Sleeper {
  bool times_out = false;  // how it will end, known to the recording
  bool asleep = true;      // still in the kernel's queue
};

class ReferenceKernel {
 public:
  explicit ReferenceKernel(uint64_t seed) : random_(seed) {}

  void RunOneExecution() {
    for (int step = 0; step < 60; ++step) {
      switch (random_.Below(4)) {
        case 0:
          Sleep();
          break;
        case 1:
          Wake();
          break;
        case 2:
          TimeOut();
          break;
        default:
          ReturnOne();
          break;
      }
    }
  }

 private:
  void Sleep() {
    const bool times_out = random_.Below(3) == 0;
    sleepers_.push_back({.times_out = times_out, .asleep = true});
    table_.Wait(kWord, !times_out);
  }

  void Wake() {
    const uint64_t wanted = random_.Below(3) + 1;
    uint64_t woken = 0;
    // Which sleepers a wake finds is the kernel's choice; one that is going to
    // time out is, by that knowledge, not woken.
    for (Sleeper& sleeper : sleepers_) {
      if (woken < wanted && sleeper.asleep && !sleeper.times_out) {
        sleeper.asleep = false;
        ++woken;
      }
    }
    ASSERT_TRUE(table_.Wake(kWord, wanted, woken))
        << "wanted " << wanted << ", woken " << woken;
  }

  void TimeOut() {
    for (Sleeper& sleeper : sleepers_) {
      if (sleeper.asleep && sleeper.times_out) {
        sleeper.asleep = false;
        return;
      }
    }
  }

  void ReturnOne() {
    const auto found = std::ranges::find(sleepers_, false, &Sleeper::asleep);
    if (found == sleepers_.end()) {
      return;
    }
    if (!found->times_out) {
      ASSERT_TRUE(table_.MayReturn(kWord));
    }
    table_.Return(kWord, !found->times_out);
    sleepers_.erase(found);
  }

  Random random_;
  FutexTable table_;
  std::vector<Sleeper> sleepers_;
};

TEST(FutexTableTest, AcceptsEveryExecutionOfAKernel) {
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    SCOPED_TRACE(seed);
    ReferenceKernel(seed).RunOneExecution();
    ASSERT_FALSE(HasFatalFailure());
  }
}

TEST(FutexTableTest, AWakeCannotWakeMoreThanSleep) {
  FutexTable table;
  EXPECT_FALSE(table.Wake(kWord, 1, 1));
  table.Wait(kWord, true);
  EXPECT_FALSE(table.Wake(kWord, 2, 2));
  EXPECT_TRUE(table.Wake(kWord, 2, 1));
  EXPECT_FALSE(table.Wake(kWord, 1, 1)) << "the sleeper was woken already";
}

// Whom of two the kernel moved, and whom it woke, the recording does not tell.
TEST(FutexTableTest, ThoseWhoAreMovedReturnByAWakeOnTheOtherWord) {
  constexpr uint64_t kOther = 0x2000;
  FutexTable table;
  table.Wait(kWord, true);
  table.Wait(kWord, true);
  EXPECT_FALSE(table.Requeue(kWord, kOther, 1, 1, 3)) << "only two sleep";
  EXPECT_FALSE(table.Requeue(kWord, kOther, 1, 1, 1)) << "with room for two";
  EXPECT_TRUE(table.Requeue(kWord, kOther, 1, 1, 2));
  EXPECT_TRUE(table.MayReturn(kWord));
  table.Return(kWord, true);
  EXPECT_FALSE(table.MayReturn(kWord)) << "it sleeps on the other word";
  EXPECT_TRUE(table.Wake(kOther, 1, 1));
  EXPECT_TRUE(table.MayReturn(kWord));
  table.Return(kWord, true);
  EXPECT_FALSE(table.Wake(kOther, 1, 1));
}

TEST(FutexTableTest, AWakeOfTwoWordsIsDividedAsTheyAllow) {
  constexpr uint64_t kOther = 0x2000;
  FutexTable table;
  table.Wait(kWord, true);
  table.Wait(kOther, true);
  EXPECT_FALSE(table.WakeTwo(kWord, 1, kOther, 1, 1)) << "one passed over";
  EXPECT_FALSE(table.WakeTwo(kWord, 2, kOther, 0, 2)) << "none wanted there";
  EXPECT_TRUE(table.WakeTwo(kWord, 1, kOther, 1, 2));
  EXPECT_TRUE(table.MayReturn(kWord));
  EXPECT_TRUE(table.MayReturn(kOther));
}

TEST(FutexTableTest, AWakeByBitsMayPassOverASleeper) {
  FutexTable table;
  table.Wait(kWord, true, FutexTable::Match::kBits);
  EXPECT_TRUE(table.Wake(kWord, 1, 0, FutexTable::Match::kBits));
  EXPECT_TRUE(table.Wake(kWord, 1, 0)) << "nobody knows who else sleeps";
  EXPECT_TRUE(table.Wake(kWord, 1, 1));
}

TEST(FutexTableTest, AWakeCannotPassOverASleeperItHadRoomFor) {
  FutexTable table;
  table.Wait(kWord, true);
  table.Wait(kWord, true);
  EXPECT_FALSE(table.Wake(kWord, 2, 1));
  EXPECT_FALSE(table.Wake(kWord, 1, 0));
  EXPECT_TRUE(table.Wake(kWord, 1, 1));
}

TEST(FutexTableTest, AWaiterReturnsOnlyAfterAWake) {
  FutexTable table;
  table.Wait(kWord, true);
  EXPECT_FALSE(table.MayReturn(kWord));
  table.WakeOnExit(kWord + 4);
  EXPECT_FALSE(table.MayReturn(kWord)) << "another word";
  table.WakeOnExit(kWord);
  EXPECT_TRUE(table.MayReturn(kWord));
  table.Return(kWord, true);
  EXPECT_FALSE(table.MayReturn(kWord));
}

}  // namespace
}  // namespace clew::follower
