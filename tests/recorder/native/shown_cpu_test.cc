// Goal: a program that is stepped is told no feature that the host lacks, none
// that a replay does not know, and nothing that depends on the core.
// Method: every leaf that a program may ask for, against the host's own answer
// and the list of x86-64-v2.
#include "recorder/native/shown_cpu.h"

#include <cpuid.h>
#include <gtest/gtest.h>

namespace clew::recorder {
namespace {

CpuidResult Host(uint32_t leaf, uint32_t subleaf) {
  CpuidResult told;
  __cpuid_count(leaf, subleaf, told.eax, told.ebx, told.ecx, told.edx);
  return told;
}

TEST(ShownCpuTest, HasNoFeatureThatTheHostLacks) {
  for (const uint32_t leaf : {1u, 7u, 0x80000001u}) {
    const CpuidResult shown = ShownCpuid(leaf, 0);
    const CpuidResult host = Host(leaf, 0);
    EXPECT_EQ(shown.ecx & ~host.ecx, 0u) << leaf;
    EXPECT_EQ(shown.edx & ~host.edx, 0u) << leaf;
  }
}

// Source: System V ABI, AMD64 supplement, "Micro-Architecture Levels".
TEST(ShownCpuTest, IsOfTheSecondLevel) {
  const CpuidResult basic = ShownCpuid(1, 0);
  constexpr uint32_t kLevel2 = bit_SSE3 | bit_SSSE3 | bit_CMPXCHG16B |
                               bit_SSE4_1 | bit_SSE4_2 | bit_POPCNT;
  EXPECT_EQ(basic.ecx, Host(1, 0).ecx & kLevel2);
  EXPECT_EQ(basic.ecx & (bit_AVX | bit_OSXSAVE | bit_FMA | bit_MOVBE), 0u);
  const CpuidResult extended = ShownCpuid(0x80000001, 0);
  EXPECT_EQ(extended.ecx & (bit_LZCNT | bit_TBM | bit_SSE4a), 0u);
  EXPECT_EQ(extended.edx & bit_3DNOW, 0u);
  const CpuidResult later = ShownCpuid(7, 0);
  EXPECT_EQ(later.ebx | later.ecx | later.edx, 0u);
}

TEST(ShownCpuTest, LeavesBehindTheLastToldAreEmpty) {
  EXPECT_LE(ShownCpuid(0, 0).eax, 7u);
  EXPECT_LE(ShownCpuid(0x80000000, 0).eax, 0x80000008u);
  for (const uint32_t leaf : {0xbu, 0xdu, 0x14u, 0x19u, 0x8000001du}) {
    const CpuidResult told = ShownCpuid(leaf, 0);
    EXPECT_EQ(told.eax | told.ebx | told.ecx | told.edx, 0u) << leaf;
  }
}

TEST(ShownCpuTest, NumbersOfCoresAreNotTold) {
  EXPECT_EQ(ShownCpuid(1, 0).ebx >> 24, 0u);
}

TEST(ShownCpuTest, TheMaskHasWhatEveryCpuHas) {
  EXPECT_EQ(HostMxcsrMask() & 0xffbf, 0xffbfu);
}

}  // namespace
}  // namespace clew::recorder
