// Goal: every SSE form has the effect that the CPU has, on general registers,
// flags, XMM registers, MXCSR, x87 and memory; a misaligned operand faults.
// Method: every form of sse_forms.cc, with register and memory operands, low
// and high registers, source equal to destination, all 256 immediates; random
// states rich in boundary values, all rounding modes, FTZ and DAZ. Oracle: the
// CPU.

#include <gtest/gtest.h>
#include <signal.h>

#include "tests/machine/vector/any_state.h"
#include "tests/machine/vector/form_comparison.h"
#include "tests/machine/vector/sse_forms.h"

namespace clew::machine {
namespace {

class SseInsnTest : public FormComparison {
 protected:
  SseInsnTest() : FormComparison(20) {}

  State AnyFormState() override { return AnyState(random_); }
  std::string Difference(const State& state) override {
    return oracle_.Compare(state, 0);
  }
};

// One in how many comparisons.
class SseFormsTest : public SseInsnTest,
                     public testing::WithParamInterface<int> {};

TEST_P(SseFormsTest, EveryFormAgreesWithTheCpu) {
  EXPECT_EQ(CompareAll(AllSseForms(), GetParam()), 506u)
      << "a form was lost or added";
}

INSTANTIATE_TEST_SUITE_P(Quarter, SseFormsTest, testing::Values(4));
// In tools/test --all.
INSTANTIATE_TEST_SUITE_P(More, SseFormsTest, testing::Values(1));

TEST_F(SseInsnTest, AMisalignedOperandIsTheFaultThatItIsOnTheCpu) {
  for (const SseForm& form : AllSseForms()) {
    if ((form.rm & kRmMemAligned) == 0) {
      continue;
    }
    const auto code = Encode(form, kMemoryChoice, 0);
    Compare(code, 4, 15);
    State state = AnyState(random_);
    state.regs.gpr[kRsi] += 8;
    EXPECT_EQ(oracle_.RunOnMachine(state).signal, SIGSEGV) << Describe(code);
  }
}

TEST_F(SseInsnTest, AnUnmappedOperandChangesNothing) {
  for (const SseForm& form : AllSseForms()) {
    if ((form.rm & kInMemory) != 0) {
      CompareFault(form, kDataAt + kDataBytes);
    }
  }
}

}  // namespace
}  // namespace clew::machine
