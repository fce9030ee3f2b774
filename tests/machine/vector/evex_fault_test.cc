// Goal: an instruction with EVEX, or on an opmask register, that accesses what
// it may not is the fault that it is on the CPU, with the same address, and
// changes nothing; elements that a writemask does not select are not accessed.
// Method: every form with a memory operand (evex_forms.cc) under any writemask,
// at the end of the data window and before its begin; those that want it
// aligned, misaligned by any number of bytes. Oracle: the CPU, if it has
// AVX-512.

#include <gtest/gtest.h>
#include <signal.h>

#include "tests/machine/vector/evex_comparison.h"
#include "tests/machine/vector/evex_forms.h"

namespace clew::machine {
namespace {

class EvexFaultTest : public EvexComparison {
 protected:
  EvexFaultTest() : EvexComparison(516) {}

  // Memory is [rsi] of a register that is no operand.
  EvexChoice AnyPlainChoice(const EvexForm& form, int trial) {
    EvexChoice choice = AnyChoice(form, trial);
    choice.disp8 = std::nullopt;
    choice.indexed = false;
    return choice;
  }
  // Around the window's end or its begin; also aligned, if the form wants it.
  uint64_t AnyEdge(const EvexForm& form) {
    const uint64_t distance = random_.Below(form.memory_bytes + 8u);
    const uint64_t end = random_.Below(2) == 0 ? kDataAt : kDataAt + kDataBytes;
    const uint64_t addr = end - distance;
    return form.aligned && random_.Below(2) == 0
               ? addr / form.memory_bytes * form.memory_bytes
               : addr;
  }
  void CompareAt(const EvexForm& form, const EvexChoice& choice,
                 uint64_t addr) {
    State state = AnyFormState();
    state.regs.gpr[kRsi] = addr;
    Compare(form, choice, static_cast<uint8_t>(random_.Next()), state);
  }
};

TEST_P(EvexFaultTest, AnAccessThatFaultsDoesSoWhereTheCpuDoes) {
  int accesses = 0;
  int faults = 0;
  for (const EvexForms* forms : {&AllEvexForms(), &AllOpmaskForms()}) {
    EachForm(*forms, [&](const EvexForm& form) {
      const int trials = form.in_memory() ? GetParam().trials : 0;
      for (int trial = 0; trial < trials; ++trial) {
        CompareAt(form, AnyPlainChoice(form, trial), AnyEdge(form));
        ++accesses;
        faults += signal() != 0 ? 1 : 0;
      }
    });
  }
  EXPECT_GT(faults, accesses / 4);
  EXPECT_LT(faults, accesses * 7 / 8);
}

// (An Intel CPU does not ask for alignment where the writemask selects
// nothing.)
TEST_P(EvexFaultTest, AMisalignedOperandIsTheFaultThatItIsOnTheCpu) {
  int forms = 0;
  EachForm(AllEvexForms(), [&](const EvexForm& form) {
    if (!form.in_memory() || !form.aligned) {
      return;
    }
    ++forms;
    for (int trial = 0; trial < GetParam().trials; ++trial) {
      const EvexChoice choice = AnyPlainChoice(form, trial);
      CompareAt(form, choice,
                kMemOperandAddr + 1 + random_.Below(form.memory_bytes - 1u));
      EXPECT_TRUE(choice.opmask != 0 || signal() == SIGSEGV) << form.mnemonic;
    }
  });
  EXPECT_EQ(forms, 36) << "a form was lost or added";
}

INSTANTIATE_TEST_SUITE_P(Parts, EvexFaultTest,
                         testing::Values(EvexPart{"all", 6}), PartName);
// In tools/test --all.
INSTANTIATE_TEST_SUITE_P(More, EvexFaultTest,
                         testing::Values(EvexPart{"all", 60}), PartName);

}  // namespace
}  // namespace clew::machine
