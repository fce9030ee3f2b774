// Goal: every VEX form has the effect that the CPU has, on all of the ZMM
// registers, general registers, flags, MXCSR, x87 and memory; it faults where
// the CPU does.
// Method: every form of vex_forms.cc, with both VEX prefixes, register and
// memory operands, sources equal to each other and to the destination; random
// states rich in boundary values. Oracle: the CPU, if it has AVX2.

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "tests/machine/vector/any_state.h"
#include "tests/machine/vector/form_comparison.h"
#include "tests/machine/vector/sse_forms.h"

namespace clew::machine {
namespace {

class VexInsnTest : public FormComparison {
 protected:
  VexInsnTest() : FormComparison(256) {}

  void SetUp() override {
    if (!x86::HostFeatures().Contains(
            {x86::Feature::kAvx, x86::Feature::kAvx2})) {
      GTEST_SKIP() << "this CPU has no AVX2";
    }
  }
  // Of this CPU, not of QEMU.
  State AnyFormState() override {
    State state = AnyState(random_);
    state.regs.mxcsr_mask = x86::HostMxcsrMask();
    return state;
  }
  std::string Difference(const State& state) override {
    return oracle_.Compare(state, 0);
  }

  // YMM3 = elements at rsi + 4 * YMM9, under the mask in YMM12. Indices reach
  // from before the data to behind it.
  void CompareGather(uint8_t opcode, bool w, bool l) {
    const std::vector<uint8_t> code = {
        0xc4,
        0xa2,
        static_cast<uint8_t>((w ? 0x80 : 0) | 0x18 | (l ? 4 : 0) | 1),
        opcode,
        0x1c,
        0x8e};
    oracle_.SetCode(code);
    constexpr unsigned kYmmQuads = 4;
    const bool is_of_quads = (opcode & 1) != 0;
    for (int trial = 0; trial < kTrials; ++trial) {
      State state = AnyFormState();
      for (unsigned i = 0; i < kYmmQuads; ++i) {
        state.regs.quad(9, i) =
            is_of_quads ? AnyIndex()
                        : (AnyIndex() << 32) | (AnyIndex() & 0xffffffff);
      }
      ASSERT_EQ(Difference(state), "") << Describe(code) << ", trial " << trial;
    }
  }
  uint64_t AnyIndex() {
    return random_.Below(100) == 0 ? random_.Next()
                                   : random_.Below(700) - uint64_t{200};
  }
};

// One in how many comparisons.
class VexFormsTest : public VexInsnTest,
                     public testing::WithParamInterface<int> {};

TEST_P(VexFormsTest, EveryFormAgreesWithTheCpu) {
  EXPECT_EQ(CompareAll(AllVexForms(), GetParam()), 956u)
      << "a form was lost or added";
}

TEST_P(VexFormsTest, EveryMoveUnderAMaskAgreesWithTheCpu) {
  EXPECT_EQ(CompareAll(AllMaskedForms(), GetParam()), 16u)
      << "a form was lost or added";
}

TEST_P(VexFormsTest, EveryFusedFormAgreesWithTheCpu) {
  if (!x86::HostFeatures().Contains(
          {x86::Feature::kFma, x86::Feature::kF16c})) {
    GTEST_SKIP() << "this CPU has no FMA or no F16C";
  }
  EXPECT_EQ(CompareAll(AllFusedForms(), GetParam()), 200u)
      << "a form was lost or added";
}

TEST_P(VexFormsTest, EveryCryptoFormAgreesWithTheCpu) {
  if (!x86::HostFeatures().Contains(
          {x86::Feature::kAes, x86::Feature::kPclmulqdq, x86::Feature::kSha})) {
    GTEST_SKIP() << "this CPU has no AES, no PCLMULQDQ or no SHA";
  }
  EXPECT_EQ(CompareAll(AllCryptoForms(), GetParam()), 42u)
      << "a form was lost or added";
}

INSTANTIATE_TEST_SUITE_P(Quarter, VexFormsTest, testing::Values(4));
// In tools/test --all.
INSTANTIATE_TEST_SUITE_P(More, VexFormsTest, testing::Values(1));

// VPGATHERxx, VGATHERxPx, at random indices into the data.
TEST_F(VexInsnTest, EveryGatherAgreesWithTheCpu) {
  for (const unsigned opcode : {0x90u, 0x91u, 0x92u, 0x93u}) {
    for (const bool w : {false, true}) {
      for (const bool l : {false, true}) {
        CompareGather(static_cast<uint8_t>(opcode), w, l);
      }
    }
  }
}

TEST_F(VexInsnTest, VzeroupperAndVzeroallAgreeWithTheCpu) {
  EXPECT_TRUE(Compare({0xc5, 0xf8, 0x77}, kTrials));
  EXPECT_TRUE(Compare({0xc5, 0xfc, 0x77}, kTrials));
}

// Those of QEMU are others.
TEST_F(VexInsnTest, ApproximationsOfARealCpuAreItsOwn) {
  for (const uint8_t opcode : {uint8_t{0x52}, uint8_t{0x53}}) {
    for (const std::vector<uint8_t>& before :
         {std::vector<uint8_t>{0x0f}, std::vector<uint8_t>{0xf3, 0x0f},
          std::vector<uint8_t>{0xc5, 0xf8}, std::vector<uint8_t>{0xc5, 0xfc},
          std::vector<uint8_t>{0xc5, 0xf2}}) {
      std::vector<uint8_t> code = before;
      code.insert(code.end(), {opcode, 0xca});
      oracle_.SetCode(code);
      for (int trial = 0; trial < kTrials; ++trial) {
        ASSERT_EQ(Difference(AnyFormState()), "") << Describe(code);
      }
    }
  }
}

// Reserved bits are a fault. (Bit 17, which AMD's CPUs have, is left out.)
TEST_F(VexInsnTest, LoadsAndStoresOfMxcsrAgreeWithTheCpu) {
  constexpr size_t kAt = kMemOperandAddr - kDataAt;
  for (const std::vector<uint8_t>& prefix :
       {std::vector<uint8_t>{}, std::vector<uint8_t>{0xc5, 0xf8}}) {
    for (const uint8_t modrm : {uint8_t{0x16}, uint8_t{0x1e}}) {
      std::vector<uint8_t> code = prefix;
      if (code.empty()) {
        code.push_back(0x0f);
      }
      code.insert(code.end(), {0xae, modrm});
      oracle_.SetCode(code);
      for (int trial = 0; trial < kTrials; ++trial) {
        State state = AnyFormState();
        const uint64_t value = random_.Next() & 0xfffdffff;
        const auto mxcsr =
            static_cast<uint32_t>(trial % 2 == 0 ? value & 0xffff : value);
        std::memcpy(&state.window[kAt], &mxcsr, sizeof(mxcsr));
        ASSERT_EQ(Difference(state), "") << Describe(code);
      }
    }
  }
}

TEST_F(VexInsnTest, AnUnmappedOperandChangesWhatItChangesOnTheCpu) {
  SseForms forms = AllVexForms();
  if (x86::HostFeatures().Contains({x86::Feature::kFma, x86::Feature::kF16c})) {
    const SseForms fused = AllFusedForms();
    forms.insert(forms.end(), fused.begin(), fused.end());
  }
  for (const SseForm& form : forms) {
    if ((form.rm & kInMemory) != 0) {
      CompareFault(form, kDataAt + kDataBytes);
    }
    if ((form.rm & kRmMem) != 0) {  // its second half, or less, or nothing
      SignalAt(form, kDataAt + kDataBytes - 8);
    }
  }
}

// Only what the mask selects is accessed: at the end of memory, before its
// begin, and behind it.
TEST_F(VexInsnTest, AMoveUnderAMaskFaultsWhereTheCpuDoes) {
  int faults = 0;
  for (const SseForm& form : AllMaskedForms()) {
    for (int trial = 0; trial < kTrials; ++trial) {
      const uint64_t distance = random_.Below(40);
      const uint64_t addr = random_.Below(2) == 0
                                ? kDataAt - distance
                                : kDataAt + kDataBytes - distance;
      faults += SignalAt(form, addr) != 0 ? 1 : 0;
    }
  }
  EXPECT_GT(faults, 16 * kTrials / 4);
  EXPECT_LT(faults, 16 * kTrials);
}

// To half of its size, which is what an operand of 128 bits may be aligned to.
TEST_F(VexInsnTest, AMisalignedOperandIsTheFaultThatItIsOnTheCpu) {
  for (const SseForm& form : AllVexForms()) {
    if ((form.rm & kRmMemAligned) != 0) {
      CompareFault(form, kMemOperandAddr + 8u * form.vex_lanes);
    }
  }
}

}  // namespace
}  // namespace clew::machine
