// Goal: registers that differ anywhere have different digests.
// Method: exhaustive over the bytes of the struct: each byte that takes part in
// operator== (which the compiler writes) is changed alone.
// Oracle: operator==.

#include "machine/registers.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

namespace clew::machine {
namespace {

TEST(RegistersTest, EveryFieldChangesTheDigest) {
  const Registers start;
  std::set<uint64_t> digests = {DigestOf(start)};
  size_t padding = 0;
  for (size_t i = 0; i < sizeof(Registers); ++i) {
    Registers changed = start;
    reinterpret_cast<unsigned char*>(&changed)[i] ^= 0x40;
    if (changed == start) {
      EXPECT_EQ(DigestOf(changed), DigestOf(start)) << "padding at " << i;
      ++padding;
      continue;
    }
    EXPECT_TRUE(digests.insert(DigestOf(changed)).second) << "byte " << i;
  }
  // Behind each Float80's 10 bytes, and behind high_zmm_in_use and x87.in_use.
  EXPECT_LE(padding, 8 * 6 + 4 + 1u);
}

TEST(RegistersTest, EqualValuesAtDifferentPlacesHaveDifferentDigests) {
  Registers a;
  Registers b;
  a.gpr[kRax] = 1;
  b.gpr[kRcx] = 1;
  EXPECT_NE(DigestOf(a), DigestOf(b));
  EXPECT_EQ(DigestOf(a), DigestOf(Registers(a)));
}

TEST(RegistersTest, ALowLaneIsThatOfTheFirstSixteen) {
  Registers registers;
  for (unsigned number = 0; number < kVecRegisters; ++number) {
    registers.vec[2][number].q = {number, 100};
  }
  LowVecLane low = registers.low_lane(2);
  EXPECT_EQ(low[15].q[0], 15u);
  low[15].q[0] = 7;
  registers.SetLowLane(2, low);
  EXPECT_EQ(registers.vec[2][15].q[0], 7u);
  EXPECT_EQ(registers.vec[2][16].q[0], 16u);
}

TEST(RegistersTest, AValueInAnotherLaneHasAnotherDigest) {
  std::set<uint64_t> digests;
  for (unsigned number = 0; number < kVecRegisters; ++number) {
    for (unsigned i = 0; i < kVecQuads; ++i) {
      Registers registers;
      registers.quad(number, i) = 1;
      digests.insert(DigestOf(registers));
    }
  }
  EXPECT_EQ(digests.size(), kVecRegisters * kVecQuads);
}

}  // namespace
}  // namespace clew::machine
