// Goal: every operation of machine/vector/shuffle.h has the effect of its
// instruction.
// Method: all 256 immediates, each on random vectors rich in boundary bytes.
// Oracle: the CPU.

#include "machine/vector/shuffle.h"

#include <gtest/gtest.h>

#include "tests/machine/vector/native_imm.h"

namespace clew::machine {
namespace {

constexpr uint64_t kShuffleSeed = 1;
constexpr int kVectors = 40;

CLEW_NATIVE_IMM(Pshufd, "pshufd", "%[s], %[d]")
CLEW_NATIVE_IMM(Pshuflw, "pshuflw", "%[s], %[d]")
CLEW_NATIVE_IMM(Pshufhw, "pshufhw", "%[s], %[d]")
CLEW_NATIVE_IMM(Shufps, "shufps", "%[s], %[d]")
CLEW_NATIVE_IMM(Shufpd, "shufpd", "%[s], %[d]")
CLEW_NATIVE_IMM(Palignr, "palignr", "%[s], %[d]")
CLEW_NATIVE_IMM(Pslldq, "pslldq", "%[d]")
CLEW_NATIVE_IMM(Psrldq, "psrldq", "%[d]")
CLEW_NATIVE_IMM(Psllw, "psllw", "%[d]")
CLEW_NATIVE_IMM(Pslld, "pslld", "%[d]")
CLEW_NATIVE_IMM(Psllq, "psllq", "%[d]")
CLEW_NATIVE_IMM(Psrlw, "psrlw", "%[d]")
CLEW_NATIVE_IMM(Psrld, "psrld", "%[d]")
CLEW_NATIVE_IMM(Psrlq, "psrlq", "%[d]")
CLEW_NATIVE_IMM(Psraw, "psraw", "%[d]")
CLEW_NATIVE_IMM(Psrad, "psrad", "%[d]")
CLEW_NATIVE_IMM(Blendps, "blendps", "%[s], %[d]")
CLEW_NATIVE_IMM(Blendpd, "blendpd", "%[s], %[d]")
CLEW_NATIVE_IMM(Pblendw, "pblendw", "%[s], %[d]")
CLEW_NATIVE_IMM(Insertps, "insertps", "%[s], %[d]")
CLEW_NATIVE_IMM(Mpsadbw, "mpsadbw", "%[s], %[d]")

struct Case {
  const char* name;
  VecOp ours;
  const std::array<NativeOp, 256>& native;
};

class ShuffleTest : public testing::TestWithParam<Case> {};

TEST_P(ShuffleTest, AgreesWithTheCpuForEveryImmediate) {
  Random random(kShuffleSeed);
  for (int imm = 0; imm < 256; ++imm) {
    for (int i = 0; i < kVectors; ++i) {
      const Vec128 dst = AnyVector(random);
      const Vec128 src = AnyVector(random);
      VecState state;
      state.imm = static_cast<uint8_t>(imm);
      Vec128 got = dst;
      GetParam().ours(got, src, state);
      const auto native = GetParam().native[static_cast<size_t>(imm)];
      ASSERT_EQ(got, native(dst, src))
          << GetParam().name << ", imm " << imm << ", seed " << kShuffleSeed;
      ASSERT_EQ(state.mxcsr, VecState{}.mxcsr);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, ShuffleTest,
    testing::Values(
        Case{"Pshufd", Pshufd, kPshufd}, Case{"Pshuflw", Pshuflw, kPshuflw},
        Case{"Pshufhw", Pshufhw, kPshufhw}, Case{"Shufps", Shufps, kShufps},
        Case{"Shufpd", Shufpd, kShufpd}, Case{"Palignr", Palignr, kPalignr},
        Case{"Pslldq", Pslldq, kPslldq}, Case{"Psrldq", Psrldq, kPsrldq},
        Case{"Psllw", PsllwImm, kPsllw}, Case{"Pslld", PslldImm, kPslld},
        Case{"Psllq", PsllqImm, kPsllq}, Case{"Psrlw", PsrlwImm, kPsrlw},
        Case{"Psrld", PsrldImm, kPsrld}, Case{"Psrlq", PsrlqImm, kPsrlq},
        Case{"Psraw", PsrawImm, kPsraw}, Case{"Psrad", PsradImm, kPsrad},
        Case{"Blendps", Blendps, kBlendps}, Case{"Blendpd", Blendpd, kBlendpd},
        Case{"Pblendw", Pblendw, kPblendw},
        Case{"Insertps", Insertps, kInsertps},
        Case{"Mpsadbw", Mpsadbw, kMpsadbw}),
    [](const auto& test) { return std::string(test.param.name); });

// An operand may be its own source.
TEST(ShuffleAliasTest, SourceAndDestinationMayBeTheSame) {
  Random random(kShuffleSeed);
  for (int i = 0; i < kVectors; ++i) {
    VecState state;
    state.imm = 0x4e;
    Vec128 both = AnyVector(random);
    const Vec128 before = both;
    Shufps(both, both, state);
    ASSERT_EQ(both, kShufps[0x4e](before, before));
    Vec128 shifted = before;
    state.imm = 5;
    Palignr(shifted, shifted, state);
    ASSERT_EQ(shifted, kPalignr[5](before, before));
  }
}

}  // namespace
}  // namespace clew::machine
