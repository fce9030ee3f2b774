// Goal: a host has its burst and then one call a second, whatever it did before
// and whatever others do; what is remembered of hosts is bounded.
// Method: every second of a minute with more calls than are let through, and
// the limits from both sides.
#include "collector/service/call_pace.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cerrno>

namespace clew::collector {
namespace {

// Of `tried` calls at `now_s`, how many were let through.
uint64_t Let(CallPace& pace, uint64_t now_s, uint64_t tried = 100) {
  uint64_t let = 0;
  for (uint64_t i = 0; i < tried; ++i) {
    let += pace.Take("web1", now_s) ? 1 : 0;
  }
  return let;
}

TEST(CallPaceTest, ABurstAndThenOneASecond) {
  CallPace pace;
  EXPECT_EQ(Let(pace, 1000), CallPace::kBurst);
  for (uint64_t now_s = 1001; now_s < 1060; ++now_s) {
    EXPECT_EQ(Let(pace, now_s), 1u) << now_s;
  }
  EXPECT_TRUE(pace.Take("web2", 1059)) << "no matter of the first host's";
  const Status refused = pace.Take("web1", 1059);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kSystem);
  EXPECT_EQ(refused.error().sys_errno, EAGAIN);
}

TEST(CallPaceTest, WhoCallsSeldomIsNeverRefusedAndSavesNoMoreThanABurst) {
  CallPace pace;
  for (uint64_t now_s = 0; now_s < 100; ++now_s) {
    EXPECT_EQ(Let(pace, now_s, 1), 1u);
  }
  EXPECT_EQ(Let(pace, 1'000'000), CallPace::kBurst);
  EXPECT_EQ(Let(pace, 1'000'003), 3u);
}

TEST(CallPaceTest, WhatIsRememberedIsBounded) {
  CallPace pace;
  for (size_t i = 0; i < CallPace::kHostsMax; ++i) {
    ASSERT_TRUE(pace.Take(fmt::format("host{}", i), 0));
  }
  EXPECT_FALSE(pace.Take("one more", 0));
  EXPECT_TRUE(pace.Take("host7", 0)) << "it is known";
  EXPECT_TRUE(pace.Take("one more", 1)) << "others are idle again";
  EXPECT_TRUE(pace.Take("another", 1));
}

}  // namespace
}  // namespace clew::collector
