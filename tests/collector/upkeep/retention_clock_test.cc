// Goal: bundles grow old by the time that passes and not by what the system's
// clock says; no jump of it moves the retention's clock by more than twice the
// time that was seen to pass. Method: hand-picked jumps; random ones.
#include "collector/upkeep/retention_clock.h"

#include <gtest/gtest.h>

#include <random>

#include "common/units.h"
#include "tests/collector/samples.h"

namespace clew::collector {
namespace {

constexpr int64_t kStart_s = 1'700'000'000;

class RetentionClockTest : public testing::Test {
 protected:
  RetentionClock Make(int64_t begin_s = kStart_s) {
    return RetentionClock(PosixFileSystem(), path_, begin_s, steady_s_);
  }
  // Both clocks go on.
  void Pass(RetentionClock& clock, int64_t seconds) {
    steady_s_ += static_cast<uint64_t>(seconds);
    wall_s_ += seconds;
    ASSERT_TRUE(clock.Advance(wall_s_, steady_s_));
  }

  const TempFolder folder_;
  const std::string path_ = folder_ / "clock";
  uint64_t steady_s_ = 77;
  int64_t wall_s_ = kStart_s;
};

TEST_F(RetentionClockTest, GoesWithAClockThatDoesNotJump) {
  RetentionClock clock = Make();
  for (int i = 1; i <= 10; ++i) {
    Pass(clock, 300);
    EXPECT_EQ(clock.now_s(), wall_s_);
    EXPECT_FALSE(clock.IsBehind());
  }
}

TEST_F(RetentionClockTest, AJumpAheadOnlyMakesItTwiceAsFast) {
  RetentionClock clock = Make();
  Pass(clock, 300);
  wall_s_ += 60 * kDay_s;
  Pass(clock, 300);
  EXPECT_EQ(clock.now_s(), kStart_s + 900);
  EXPECT_TRUE(clock.IsBehind());
  wall_s_ -= 60 * kDay_s;  // it was put right
  Pass(clock, 300);
  EXPECT_EQ(clock.now_s(), kStart_s + 900);
  EXPECT_FALSE(clock.IsBehind());
}

TEST_F(RetentionClockTest, AJumpBackHoldsIt) {
  RetentionClock clock = Make();
  Pass(clock, 300);
  wall_s_ = 0;
  Pass(clock, 300);
  EXPECT_EQ(clock.now_s(), kStart_s + 300);
}

// Off for 60 days: no bundle is older than before, and 60 days later all are as
// old as they are.
TEST_F(RetentionClockTest, TimeWhileItDidNotRunIsCaughtUp) {
  {
    RetentionClock clock = Make();
    Pass(clock, 300);
  }
  steady_s_ = 5;
  wall_s_ += 60 * kDay_s;
  RetentionClock clock = Make(/*begin_s=*/wall_s_);
  EXPECT_EQ(clock.now_s(), kStart_s + 300) << "from the file";
  for (int day = 0; day < 59; ++day) {
    Pass(clock, kDay_s);
    EXPECT_LT(clock.now_s(), wall_s_);
  }
  Pass(clock, kDay_s);
  EXPECT_EQ(clock.now_s(), wall_s_);
}

TEST_F(RetentionClockTest, AFileThatIsNoneOfOursIsAsNone) {
  for (const char* text :
       {"", "clew retention clock 1\n", "clew retention clock 1\n12", "17\n"}) {
    WriteFiles(folder_.path(), {{"clock", text}});
    EXPECT_EQ(Make(kStart_s).now_s(), kStart_s) << text;
  }
}

TEST_F(RetentionClockTest, NoJumpsAgeByMoreThanTwiceWhatPassed) {
  std::mt19937_64 random(7);
  RetentionClock clock = Make();
  int64_t passed_s = 0;
  for (int i = 0; i < 2000; ++i) {
    wall_s_ += static_cast<int64_t>(random() % (200 * kDay_s)) - 100 * kDay_s;
    const auto seconds = static_cast<int64_t>(random() % 600);
    const int64_t before_s = clock.now_s();
    Pass(clock, seconds);
    passed_s += seconds;
    ASSERT_GE(clock.now_s(), before_s);
    ASSERT_LE(clock.now_s(), kStart_s + 2 * passed_s);
  }
}

}  // namespace
}  // namespace clew::collector
