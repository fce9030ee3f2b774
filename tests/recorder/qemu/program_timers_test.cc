// Goal: by the clock that the program reads no timer is early, whatever the
// host's clock does; how late it is, the seed says.
// Method: property, random timers (printed seed) and hosts that are slower and
// faster than the program's clock; then by hand.
#include "recorder/qemu/program_timers.h"

#include <gtest/gtest.h>

#include "common/digest.h"
#include "common/units.h"

namespace clew::recorder {
namespace {

constexpr ProgramTimers::Key kKey = {.kind = ProgramTimers::Kind::kPosix,
                                     .id = 7};
constexpr VirtualClock::Start kStart = {.realtime_s = 1'000'000,
                                        .monotonic_s = 5000};

uint64_t ToNs(const timespec& time) {
  return static_cast<uint64_t>(time.tv_sec) * kNsPerSecond +
         static_cast<uint64_t>(time.tv_nsec);
}
timespec FromNs(uint64_t ns) {
  return {.tv_sec = static_cast<time_t>(ns / kNsPerSecond),
          .tv_nsec = static_cast<long>(ns % kNsPerSecond)};
}
itimerspec Once(uint64_t ns) {
  return {.it_interval = {}, .it_value = FromNs(ns)};
}

TEST(ProgramTimersTest, NoneIsEarlyByTheProgramsClock) {
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    VirtualClock clock(kStart);
    ProgramTimers timers(clock, seed);
    const bool absolute = random.Below(2) == 0;
    const uint64_t wait = 1 + random.Below(20'000'000);
    const uint64_t due = clock.Now(1000) + wait;
    const itimerspec set = Once(absolute ? 5000 * kNsPerSecond + due : wait);
    const uint64_t host = random.Below(1u << 30);
    const auto told = timers.Set(kKey, CLOCK_MONOTONIC, absolute, set,
                                 {.host_ns = host, .ticks = 1000});
    ASSERT_TRUE(told.has_value());
    const uint64_t run = ToNs(told->it_value);
    EXPECT_GE(run, wait + Lateness::kLeastNs);
    EXPECT_LE(run, wait + Lateness::kMostNs);
    EXPECT_FALSE(timers.ExpiredNs(host + run - 1));
    const auto expired = timers.ExpiredNs(host + run + random.Below(1000));
    ASSERT_TRUE(expired.has_value());
    EXPECT_EQ(*expired, clock.Now(1000) + run);
    EXPECT_TRUE(timers.empty());
  }
}

TEST(ProgramTimersTest, ARepeatedOneIsNeverAheadOfItsIntervals) {
  VirtualClock clock(kStart);
  ProgramTimers timers(clock, 1);
  constexpr uint64_t kMs = 1'000'000;
  const itimerspec set = {.it_interval = FromNs(10 * kMs),
                          .it_value = FromNs(10 * kMs)};
  const auto told = timers.Set(kKey, CLOCK_REALTIME, false, set, {});
  ASSERT_TRUE(told.has_value());
  EXPECT_EQ(ToNs(told->it_interval), 10 * kMs);
  const uint64_t run = ToNs(told->it_value);
  EXPECT_EQ(timers.ExpiredNs(run), run);
  EXPECT_FALSE(timers.ExpiredNs(run + 10 * kMs - 1));
  EXPECT_EQ(timers.ExpiredNs(run + 35 * kMs), run + 30 * kMs);
  EXPECT_FALSE(timers.empty());
  EXPECT_TRUE(timers.Set(kKey, CLOCK_REALTIME, false, {}, {}));
  EXPECT_TRUE(timers.empty()) << "it was stopped";
}

TEST(ProgramTimersTest, WhatIsLeftIsSaidByTheProgramsClock) {
  VirtualClock clock(kStart);
  ProgramTimers timers(clock, 1);
  ASSERT_TRUE(timers.Set(kKey, CLOCK_MONOTONIC, false, Once(5000), {}));
  const auto left = [&](uint64_t host_left, uint64_t ticks) {
    return ToNs(
        timers.Left(kKey, Once(host_left), {.host_ns = 0, .ticks = ticks})
            .it_value);
  };
  EXPECT_EQ(left(60'000, 0), 5000u);
  EXPECT_EQ(left(60'000, 100), 5000u - 100 * VirtualClock::kNsPerTick);
  EXPECT_EQ(left(60'000, 1000), 1u) << "it has not expired";
  EXPECT_EQ(left(0, 0), 0u) << "it has";
}

TEST(ProgramTimersTest, WhatTheClockIsNotIsLeftToTheHost) {
  VirtualClock clock(kStart);
  ProgramTimers timers(clock, 1);
  EXPECT_FALSE(
      timers.Set(kKey, CLOCK_PROCESS_CPUTIME_ID, false, Once(5000), {}));
  const itimerspec wrong = {.it_interval = {},
                            .it_value = {.tv_sec = 0, .tv_nsec = -1}};
  EXPECT_FALSE(timers.Set(kKey, CLOCK_MONOTONIC, false, wrong, {}));
  EXPECT_TRUE(timers.empty());
  constexpr uint64_t kFar = uint64_t{1} << 62;
  EXPECT_TRUE(timers.Set(kKey, CLOCK_MONOTONIC, true, Once(kFar), {}));
}

TEST(LatenessTest, TheSeedSaysIt) {
  Lateness one(1);
  Lateness same(1);
  Lateness other(2);
  int differing = 0;
  for (int i = 0; i < 1000; ++i) {
    const uint64_t ns = one.DrawNs();
    EXPECT_EQ(ns, same.DrawNs());
    differing += ns != other.DrawNs() ? 1 : 0;
    EXPECT_GE(ns, Lateness::kLeastNs);
    EXPECT_LE(ns, Lateness::kMostNs);
  }
  EXPECT_GT(differing, 900);
}

}  // namespace
}  // namespace clew::recorder
