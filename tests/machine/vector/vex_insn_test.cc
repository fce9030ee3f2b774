// Goal: every VEX form has the effect that the CPU has, on all of the YMM
// registers, general registers, flags, MXCSR, x87 and memory; it faults where
// the CPU does.
// Method: every form of vex_forms.cc, with both VEX prefixes, register and
// memory operands, sources equal to each other and to the destination; random
// states rich in boundary values. Oracle: the CPU, if it has AVX2.

#include <gtest/gtest.h>

#include "tests/machine/vector/any_state.h"
#include "tests/machine/vector/form_comparison.h"
#include "tests/machine/vector/sse_forms.h"

namespace clew::machine {
namespace {

class VexInsnTest : public FormComparison {
 protected:
  VexInsnTest() : FormComparison(256) {}

  void SetUp() override {
    if (!HostFeatures().Contains({Feature::kAvx, Feature::kAvx2})) {
      GTEST_SKIP() << "this CPU has no AVX2";
    }
  }
  State AnyFormState() override { return AnyState(random_); }
  std::string Difference(const State& state) override {
    return oracle_.Compare(state, 0);
  }
};

TEST_F(VexInsnTest, EveryFormAgreesWithTheCpu) {
  EXPECT_EQ(CompareAll(AllVexForms()), 36u) << "a form was lost or added";
}

TEST_F(VexInsnTest, VzeroupperAndVzeroallAgreeWithTheCpu) {
  EXPECT_TRUE(Compare({0xc5, 0xf8, 0x77}, kTrials));
  EXPECT_TRUE(Compare({0xc5, 0xfc, 0x77}, kTrials));
}

TEST_F(VexInsnTest, AnUnmappedOperandChangesNothing) {
  for (const SseForm& form : AllVexForms()) {
    CompareFault(form, kDataAt + kDataBytes);
    if ((form.rm & kRmMem) != 0) {  // its second half, or less
      CompareFault(form, kDataAt + kDataBytes - 8);
    }
  }
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
