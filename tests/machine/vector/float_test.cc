// Goal: what sse_insn_test.cc and x87_insn_test.cc cannot ask the CPU: the
// approximations are QEMU's, the host's own floating point state comes back, an
// exception that the guest has not masked does not trap.
// Method: boundary and random values; the oracle of the approximations is plain
// C++ arithmetic.

#include "machine/vector/float.h"

#include <emmintrin.h>
#include <gtest/gtest.h>

#include <cmath>

#include "machine/vector/x87_op.h"
#include "tests/machine/vector/any_state.h"

namespace clew::machine {
namespace {

constexpr uint64_t kFloatSeed = 5;

bool SameFloat(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

TEST(ApproximationTest, ReciprocalIsTheQuotient) {
  Random random(kFloatSeed);
  for (int i = 0; i < 20000; ++i) {
    const Vec128 src = AnyVec(random);
    VecState state;
    Vec128 dst;
    Rcpps(dst, src, state);
    for (size_t element = 0; element < 4; ++element) {
      const float x = ElementsOf<float>(src)[element];
      ASSERT_TRUE(SameFloat(ElementsOf<float>(dst)[element], 1.0f / x)) << x;
    }
    ASSERT_EQ(state.mxcsr, VecState{}.mxcsr);
  }
}

TEST(ApproximationTest, RootIsTheQuotientOfTheRoot) {
  Random random(kFloatSeed);
  for (int i = 0; i < 20000; ++i) {
    const Vec128 src = AnyVec(random);
    VecState state;
    Vec128 dst;
    Rsqrtps(dst, src, state);
    for (size_t element = 0; element < 4; ++element) {
      const float x = ElementsOf<float>(src)[element];
      ASSERT_TRUE(
          SameFloat(ElementsOf<float>(dst)[element], 1.0f / std::sqrt(x)))
          << x;
    }
    ASSERT_EQ(state.mxcsr, VecState{}.mxcsr);
  }
}

TEST(ApproximationTest, ScalarFormsKeepTheUpperLanes) {
  Random random(kFloatSeed);
  constexpr std::pair<VecOp, VecOp> kOps[] = {{Rcpss, Rcpps},
                                              {Rsqrtss, Rsqrtps}};
  for (const auto& [scalar, packed] : kOps) {
    for (int i = 0; i < 1000; ++i) {
      const Vec128 src = AnyVec(random);
      const Vec128 before = AnyVec(random);
      VecState state;
      Vec128 wanted = before;
      Vec128 all;
      packed(all, src, state);
      wanted.q[0] =
          (wanted.q[0] & 0xffffffff00000000) | (all.q[0] & 0xffffffff);
      Vec128 got = before;
      scalar(got, src, state);
      ASSERT_EQ(got, wanted);
    }
  }
}

TEST(HostStateTest, MxcsrIsAsBefore) {
  const unsigned before = _mm_getcsr();
  VecState state{.mxcsr = 0x7f80, .imm = 0, .third = {}};  // towards zero
  Vec128 dst = {{0x3ff0000000000000, 0}};                  // 1.0
  const Vec128 three = {{0x4008000000000000, 0}};
  Divsd(dst, three, state);
  EXPECT_EQ(dst.q[0], 0x3fd5555555555555u);
  EXPECT_EQ(state.mxcsr, 0x7fa0u) << "inexact, and nothing else";
  EXPECT_EQ(_mm_getcsr(), before);
}

TEST(HostStateTest, AnUnmaskedExceptionIsNotedAndDoesNotTrap) {
  VecState state{.mxcsr = 0, .imm = 0, .third = {}};
  Vec128 dst = {{0x3ff0000000000000, 0}};
  Divsd(dst, Vec128{}, state);
  EXPECT_EQ(dst.q[0], 0x7ff0000000000000u);
  EXPECT_EQ(state.mxcsr, 4u) << "division by zero";
}

TEST(HostStateTest, X87ControlWordIsAsBefore) {
  const auto control = [] {
    uint16_t value;
    __asm__ volatile("fnstcw %0" : "=m"(value));
    return value;
  };
  const uint16_t before = control();
  X87Env env = {.control = 0xc00};  // towards zero, single, nothing masked
  const Float80 one = {1ull << 63, 0x3fff};
  const Float80 three = {0xc000000000000000, 0x4000};
  EXPECT_EQ(Fdiv(one, three, env), (Float80{0xaaaaaa0000000000, 0x3ffd}));
  EXPECT_EQ(env.status, 0x20) << "inexact";
  EXPECT_EQ(control(), before);
  EXPECT_EQ(std::sqrt(2.0L) * std::sqrt(2.0L) > 1.99L, true);
}

}  // namespace
}  // namespace clew::machine
