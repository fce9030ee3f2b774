// Goal: a time becomes exactly the TSC values that have it. Oracle: every TSC
// value of a small domain, through ToPerfNanos; zeros around 0, since the
// kernel's may stand for a negative number.
#include <gtest/gtest.h>

#include <optional>
#include <random>

#include "bundle/perf_data/tsc_conversion.h"

namespace clew::decoder {
namespace {

using bundle::ToPerfNanos;
using bundle::ToTsc;
using bundle::TscConversion;

constexpr uint64_t kTscs = 300;

// By trying all.
std::optional<TscInterval> Find(PerfNanos time, const TscConversion& of) {
  std::optional<TscInterval> found;
  for (uint64_t tsc = 0; tsc < kTscs; ++tsc) {
    if (ToPerfNanos(TscTicks(tsc), of) == time) {
      found = {found ? found->lo : TscTicks(tsc), TscTicks(tsc)};
    }
  }
  return found;
}

void ExpectSame(const TscConversion& of, int64_t nanos) {
  const PerfNanos time(of.zero + static_cast<uint64_t>(nanos));
  const TscInterval got = ToTsc(time, of);
  if (nanos < 0) {
    EXPECT_EQ(got.lo, TscTicks(0));
    EXPECT_EQ(got.hi, TscTicks(0));
  } else if (const auto wanted = Find(time, of)) {
    EXPECT_EQ(got.lo, wanted->lo);
    EXPECT_EQ(got.hi, wanted->hi);
  } else {
    EXPECT_LT(ToPerfNanos(got.lo, of).as_int() - of.zero, uint64_t(nanos));
    EXPECT_GT(ToPerfNanos(got.hi, of).as_int() - of.zero, uint64_t(nanos));
    EXPECT_EQ(got.lo.as_int() + 1, got.hi.as_int());
  }
}

TEST(ClockTest, ConvertsAsTheKernelSaysItDoes) {
  EXPECT_EQ(ToPerfNanos(TscTicks(123456789), {}), PerfNanos(123456789));
  const TscConversion clock = {10, 431, 1000};
  std::mt19937_64 random(1);
  for (int i = 0; i < 1000; ++i) {
    const uint64_t tsc = random() >> (10 + random() % 50);
    // (tsc * mult) >> shift without losing the upper bits.
    const uint64_t expected =
        1000 + (tsc >> 10) * 431 + (((tsc & 1023) * 431) >> 10);
    EXPECT_EQ(ToPerfNanos(TscTicks(tsc), clock), PerfNanos(expected));
  }
}

TEST(ClockTest, ATimeIsTheTscValuesThatHaveIt) {
  for (uint32_t shift = 0; shift < 4; ++shift) {
    for (uint32_t mult = 1; mult < 12; ++mult) {
      for (int64_t zero = -5; zero <= 5; ++zero) {
        const TscConversion of{
            .shift = shift, .mult = mult, .zero = static_cast<uint64_t>(zero)};
        for (int64_t nanos = -8; nanos < 30; ++nanos) {
          SCOPED_TRACE(testing::Message()
                       << "shift " << shift << " mult " << mult << " zero "
                       << zero << " time " << zero + nanos);
          ExpectSame(of, nanos);
        }
      }
    }
  }
}

}  // namespace
}  // namespace clew::decoder
