// Goal: a program that is stepped is told no feature that the host lacks, none
// that a replay does not know, and nothing that depends on the core.
// Method: every leaf that a program may ask for, against the host's own answer
// and what the machine carries out.
#include "recorder/native/shown_cpu.h"

#include <cpuid.h>
#include <gtest/gtest.h>

#include "common/x86/xcr0.h"

namespace clew::recorder {
namespace {

using x86::AskCpuid;
using x86::Feature;

constexpr uint64_t kAvx512Components = 0xe0;  // of XCR0
// Leaf 7, EBX: what the fourth level has beyond the third.
constexpr uint32_t kLater4 =
    bit_AVX512F | bit_AVX512DQ | bit_AVX512CD | bit_AVX512BW | bit_AVX512VL;

TEST(ShownCpuTest, HasNoFeatureThatTheHostLacks) {
  for (const uint32_t leaf : {1u, 7u, 0x80000001u}) {
    const CpuidResult shown = ShownCpuid(leaf, 0);
    const CpuidResult host = AskCpuid(leaf, 0);
    EXPECT_EQ(shown.ebx & ~host.ebx, 0u) << leaf;
    EXPECT_EQ(shown.ecx & ~host.ecx, 0u) << leaf;
    EXPECT_EQ(shown.edx & ~host.edx, 0u) << leaf;
  }
}

// Source: System V ABI, AMD64 supplement, "Micro-Architecture Levels". The
// third level is what the machine carries out, and more.
TEST(ShownCpuTest, IsOfTheThirdLevelWhereTheHostIs) {
  const CpuidResult basic = ShownCpuid(1, 0);
  constexpr uint32_t kLevel2 = bit_SSE3 | bit_SSSE3 | bit_CMPXCHG16B |
                               bit_SSE4_1 | bit_SSE4_2 | bit_POPCNT;
  constexpr uint32_t kLevel3 =
      bit_AVX | bit_F16C | bit_FMA | bit_MOVBE | bit_OSXSAVE | bit_XSAVE;
  constexpr uint32_t kMore = bit_AES | bit_PCLMUL;
  EXPECT_EQ(basic.ecx, AskCpuid(1, 0).ecx & (kLevel2 | kLevel3 | kMore));
  constexpr uint32_t kLater3 = bit_AVX2 | bit_BMI | bit_BMI2;
  constexpr uint32_t kLaterMore = bit_ADX | bit_SHA | bit_CLFLUSHOPT | bit_CLWB;
  const CpuidResult later = ShownCpuid(7, 0);
  EXPECT_EQ(later.ebx & ~(kLater4 | bit_AVX512IFMA),
            AskCpuid(7, 0).ebx & (kLater3 | kLaterMore));
  EXPECT_EQ(later.eax, 0u);
  EXPECT_EQ(later.edx, AskCpuid(7, 0).edx & bit_SERIALIZE);
  const CpuidResult extended = ShownCpuid(0x80000001, 0);
  EXPECT_EQ(extended.ecx & bit_LZCNT, AskCpuid(0x80000001, 0).ecx & bit_LZCNT);
  EXPECT_EQ(extended.ecx & (bit_TBM | bit_SSE4a | bit_XOP | bit_FMA4), 0u);
  EXPECT_EQ(extended.edx & bit_3DNOW, 0u);
}

// Told together, with the state that they need, or not at all.
TEST(ShownCpuTest, IsOfTheFourthLevelWhereItsStateIsShown) {
  const bool is_carried_out = ShownFeatures().Has(Feature::kAvx512f);
  EXPECT_EQ(ShownCpuid(7, 0).ebx & kLater4,
            is_carried_out ? AskCpuid(7, 0).ebx & kLater4 : 0);
  EXPECT_EQ(ShownXcr0() & kAvx512Components,
            is_carried_out ? kAvx512Components : 0);
}

// The room for it is that of the host's state: a child saves that.
TEST(ShownCpuTest, TheSavedStateIsThatOfTheVectorRegisters) {
  if (!x86::HostFeatures().Contains({Feature::kXsave, Feature::kAvx})) {
    EXPECT_EQ(ShownXcr0(), 0u);
    EXPECT_EQ(ShownCpuid(0xd, 0).eax, 0u);
    return;
  }
  const uint64_t shown = ShownXcr0();
  EXPECT_EQ(shown & ~kAvx512Components, 7u);
  EXPECT_EQ(shown & ~x86::HostXcr0(), 0u);
  const CpuidResult whole = ShownCpuid(0xd, 0);
  EXPECT_EQ(whole.eax, shown);
  EXPECT_GE(whole.ebx, 832u);
  EXPECT_EQ(whole.ebx, AskCpuid(0xd, 0).ebx);
  EXPECT_EQ(whole.edx, 0u);
  const bool has_xsavec = ShownFeatures().Has(Feature::kXsavec);
  EXPECT_EQ(ShownCpuid(0xd, 1).eax, has_xsavec ? bit_XSAVEC : 0u);
  EXPECT_EQ(ShownCpuid(0xd, 2).eax, 256u);
  EXPECT_EQ(ShownCpuid(0xd, 2).ebx, 576u);
  EXPECT_EQ(ShownCpuid(0xd, 1).ecx | ShownCpuid(0xd, 1).edx, 0u);
  for (uint32_t component = 2; component < 70; ++component) {
    const bool is_shown = component < 64 && (shown >> component & 1) != 0;
    const CpuidResult told = ShownCpuid(0xd, component);
    EXPECT_EQ(told.eax, is_shown ? AskCpuid(0xd, component).eax : 0)
        << component;
    EXPECT_EQ(told.ebx, is_shown ? AskCpuid(0xd, component).ebx : 0)
        << component;
  }
}

TEST(ShownCpuTest, LeavesBehindTheLastToldAreEmpty) {
  EXPECT_LE(ShownCpuid(0, 0).eax, 0xdu);
  EXPECT_LE(ShownCpuid(0x80000000, 0).eax, 0x80000008u);
  for (const uint32_t leaf : {0xbu, 0x14u, 0x19u, 0x24u, 0x8000001du}) {
    const CpuidResult told = ShownCpuid(leaf, 0);
    EXPECT_EQ(told.eax | told.ebx | told.ecx | told.edx, 0u) << leaf;
  }
}

TEST(ShownCpuTest, NumbersOfCoresAreNotTold) {
  EXPECT_EQ(ShownCpuid(1, 0).ebx >> 24, 0u);
}

}  // namespace
}  // namespace clew::recorder
