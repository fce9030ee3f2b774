// Goal: the bounds of a position do not depend on which positions were asked
// for before, so that what TimingEdges remembers is never stale.
// Method: exhaustive over the positions of random traces. Oracle: an object
// that was asked for nothing else.

#include "decoder/pt/timing_edges.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace clew::decoder {
namespace {

using Bytes = std::vector<std::byte>;

void Append(Bytes& bytes, std::initializer_list<unsigned> values) {
  for (const unsigned value : values) {
    bytes.push_back(static_cast<std::byte>(value));
  }
}

void AppendPsb(Bytes& bytes) {
  for (int i = 0; i < 8; ++i) {
    Append(bytes, {0x02, 0x82});
  }
  Append(bytes, {0x02, 0x23});  // PSBEND
}

constexpr unsigned kTscRatio = 10;
constexpr unsigned kCoreRatio = 40;

void AppendCbr(Bytes& bytes) { Append(bytes, {0x02, 0x03, kCoreRatio, 0}); }

void AppendCyc(Bytes& bytes, unsigned cycles) {
  Append(bytes, {3 | 4 | (cycles & 0x1f) << 3, (cycles >> 5 & 0x7f) << 1});
}

// TSC and TMA with CTC and fast counter 0.
void AppendTime(Bytes& bytes, unsigned tsc) {
  Append(bytes, {0x19, tsc & 0xff, tsc >> 8, 0, 0, 0, 0, 0});
  Append(bytes, {0x02, 0x73, 0, 0, 0, 0, 0});
}

// TNT, TIP, CYC, MTC, TSC, OVF and bytes that are not packets, at random.
Bytes RandomTrace(std::mt19937_64& random) {
  Bytes bytes;
  AppendPsb(bytes);
  AppendTime(bytes, 100);
  AppendCbr(bytes);
  unsigned mtc = 0;
  unsigned tsc = 100;
  for (int i = 0; i < 120; ++i) {
    const uint64_t choice = random() % 40;
    if (random() % 3 == 0) {
      AppendCyc(bytes, static_cast<unsigned>(random() % 60));
    }
    if (choice < 20) {
      Append(bytes, {0x0c});  // TNT
    } else if (choice < 25) {
      Append(bytes, {0x2d, 0x10, 0x00});  // TIP
    } else if (choice < 36) {
      mtc += static_cast<unsigned>(random() % 3);
      Append(bytes, {0x59, mtc & 0xff});
    } else if (choice < 38) {
      tsc += 5000;
      mtc = 0;
      AppendTime(bytes, tsc);
    } else if (choice == 38) {
      Append(bytes, {0x02, 0xf3});  // OVF
    } else {
      Append(bytes, {0x02, 0xff});  // no packet: the rest up to the PSB is lost
      AppendPsb(bytes);
    }
  }
  return bytes;
}

TEST(TimingEdgesTest, BoundsDoNotDependOnWhatWasAskedBefore) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    std::mt19937_64 random(seed);
    const Bytes bytes = RandomTrace(random);
    const TimingConfig config = {.ctc_numerator = 100,
                                 .ctc_denominator = 2,
                                 .mtc_period = 0,
                                 .tsc_bus_ratio = kTscRatio,
                                 .branches_before_timing = seed % 2 == 0};
    TimingEdges edges(bytes, config);
    TscTicks highest;
    uint64_t step = 1;
    for (uint64_t pos = 0; pos <= bytes.size(); pos += step) {
      SCOPED_TRACE(fmt::format("seed {} position {}", seed, pos));
      const TscTicks lower = edges.LowerBound(pos);
      const auto upper = edges.UpperBound(pos);
      ASSERT_EQ(lower, TimingEdges(bytes, config).LowerBound(pos));
      ASSERT_EQ(upper, TimingEdges(bytes, config).UpperBound(pos));
      highest = std::max(highest, lower);
      step = 1 + random() % (1 + seed % 7);
    }
    EXPECT_GT(highest, TscTicks(100)) << "no edge behind the first";
  }
}

// The example of the header, and one more TNT behind the TIP.
class CyclesTest : public testing::TestWithParam<unsigned> {
 protected:
  CyclesTest() {
    AppendPsb(bytes_);
    AppendCbr(bytes_);
    AppendTime(bytes_, 1000);
    AppendCyc(bytes_, 400);
    tnt_ = Put({0x0c});
    AppendCyc(bytes_, 800);
    tip_ = Put({0x2d, 0x10, 0x00});
    last_ = Put({0x0c});
    AppendCyc(bytes_, 120);
    AppendTime(bytes_, GetParam());
    Put({0x0c});
  }
  uint64_t Put(std::initializer_list<unsigned> packet) {
    Append(bytes_, packet);
    return bytes_.size();
  }
  std::pair<uint64_t, uint64_t> BoundsBehind(uint64_t pos) {
    TimingEdges edges(
        bytes_, {.tsc_bus_ratio = kTscRatio, .branches_before_timing = true});
    const uint64_t lower = edges.LowerBound(pos).as_int();
    return {lower, edges.UpperBound(pos).value_or(TscTicks(0)).as_int()};
  }
  Bytes bytes_;
  uint64_t tnt_ = 0;  // ends of the packets
  uint64_t tip_ = 0;
  uint64_t last_ = 0;
};
using SlowCyclesTest = CyclesTest;
using FastCyclesTest = CyclesTest;

TEST_P(SlowCyclesTest, BoundFromBothAnchors) {
  using Bounds = std::pair<uint64_t, uint64_t>;
  EXPECT_EQ(BoundsBehind(tnt_), Bounds(1000, GetParam() - 230));
  EXPECT_EQ(BoundsBehind(tip_), Bounds(1100, GetParam() - 30));
  EXPECT_EQ(BoundsBehind(last_), Bounds(1300, GetParam()));
}
INSTANTIATE_TEST_SUITE_P(Ends, SlowCyclesTest, testing::Values(1330, 1400));

TEST_P(FastCyclesTest, AreNotBelieved) {
  using Bounds = std::pair<uint64_t, uint64_t>;
  EXPECT_EQ(BoundsBehind(tnt_), Bounds(1000, GetParam()));
  EXPECT_EQ(BoundsBehind(last_), Bounds(1000, GetParam()));
}
INSTANTIATE_TEST_SUITE_P(Ends, FastCyclesTest, testing::Values(1200, 1329));

}  // namespace
}  // namespace clew::decoder
