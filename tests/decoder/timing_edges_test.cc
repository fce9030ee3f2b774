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

// TSC and TMA with CTC and fast counter 0.
void AppendTime(Bytes& bytes, unsigned tsc) {
  Append(bytes, {0x19, tsc & 0xff, tsc >> 8, 0, 0, 0, 0, 0});
  Append(bytes, {0x02, 0x73, 0, 0, 0, 0, 0});
}

// TNT, TIP, MTC, TSC, OVF and bytes that are no packet, at random.
Bytes RandomTrace(std::mt19937_64& random) {
  Bytes bytes;
  AppendPsb(bytes);
  AppendTime(bytes, 100);
  unsigned mtc = 0;
  unsigned tsc = 100;
  for (int i = 0; i < 120; ++i) {
    const uint64_t choice = random() % 40;
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

}  // namespace
}  // namespace clew::decoder
