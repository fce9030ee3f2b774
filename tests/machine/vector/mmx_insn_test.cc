// Goal: every MMX form has the effect that the CPU has, on the MMX registers,
// top and tags of the x87 stack, general and XMM registers, MXCSR and memory;
// one that faults changes nothing. Where QEMU made the recording, exponents are
// left alone, as it leaves them.
// Method: every form of mmx_forms.cc, with register and memory operands, REX
// bits that do not count, source equal to destination, all 256 immediates; from
// random x87 stacks whose significands are rich in boundary values. Oracle: the
// CPU.

#include <gtest/gtest.h>
#include <signal.h>

#include <cstring>

#include "common/x86/features.h"
#include "machine/insn/x87_stack.h"
#include "tests/machine/vector/any_state.h"
#include "tests/machine/vector/form_comparison.h"
#include "tests/machine/vector/sse_forms.h"

namespace clew::machine {
namespace {

class MmxInsnTest : public FormComparison {
 protected:
  MmxInsnTest() : FormComparison(64) {}

  // Half the states are those of code between two MMX instructions.
  State AnyFormState() override {
    State state = AnyState(random_);
    X87& x87 = state.regs.x87;
    x87 = AnyX87(random_);
    for (Float80& reg : x87.regs) {
      reg.significand = AnyVec(random_).q[0];
    }
    X87Stack stack(x87);
    stack.SetNonEmptyMask(stack.NonEmptyMask());
    if (random_.Below(2) != 0) {
      stack.EnterMmx();
    }
    state.regs.mxcsr_mask = random_.Below(2) != 0 ? x86::HostMxcsrMask() : 0;
    return state;
  }

  // Empty, or how machine and CPU differ, under QEMU exponents and what tags
  // tell of them aside.
  std::string Difference(const State& state) override {
    const Outcome machine = oracle_.RunOnMachine(state);
    if (!machine.supported) {
      return machine.detail;
    }
    Outcome cpu = oracle_.RunOnCpu(state);
    if (state.regs.is_of_qemu()) {
      KeepExponents(state.regs.x87, cpu.state.regs.x87);
    }
    IgnoreTopAfterFault(machine, cpu);
    return machine::Difference(cpu, machine, 0);
  }

  static void KeepExponents(const X87& before, X87& x87) {
    for (size_t i = 0; i < x87.regs.size(); ++i) {
      x87.regs[i].sign_exponent = before.regs[i].sign_exponent;
    }
    X87Stack stack(x87);
    stack.SetNonEmptyMask(stack.NonEmptyMask());
  }

  // Some CPUs have reset the top when a store faults. That is not compared: it
  // is reset anyway once the store is repeated.
  static void IgnoreTopAfterFault(const Outcome& machine, Outcome& cpu) {
    constexpr unsigned kTop = 7u << 11;
    uint16_t& status = cpu.state.regs.x87.status;
    if (cpu.signal != 0) {
      status = static_cast<uint16_t>((status & ~kTop) |
                                     (machine.state.regs.x87.status & kTop));
    }
  }
};

// One in how many comparisons.
class MmxFormsTest : public MmxInsnTest,
                     public testing::WithParamInterface<int> {};

TEST_P(MmxFormsTest, EveryFormAgreesWithTheCpu) {
  EXPECT_EQ(CompareAll(AllMmxForms(), GetParam()), 184u)
      << "a form was lost or added";
}

INSTANTIATE_TEST_SUITE_P(Quarter, MmxFormsTest, testing::Values(4));
// In tools/test --all.
INSTANTIATE_TEST_SUITE_P(More, MmxFormsTest, testing::Values(1));

TEST_F(MmxInsnTest, EmmsEmptiesTheStackAndNothingElse) {
  EXPECT_TRUE(Compare({0x0f, 0x77}, kTrials));
}

TEST_F(MmxInsnTest, AFaultChangesNothing) {
  for (const SseForm& form : AllMmxForms()) {
    if ((form.rm & kInMemory) != 0) {
      CompareFault(form, kDataAt + kDataBytes);
    }
    if ((form.rm & kRmMemAligned) != 0) {
      CompareFault(form, kMemOperandAddr + 8);
    }
  }
}

// PUNPCKLBW and its kin read four bytes, the others eight (PINSRW two, MOVD
// four).
TEST_F(MmxInsnTest, NoMoreIsReadThanTheCpuReads) {
  for (const SseForm& form : AllMmxForms()) {
    if ((form.rm & kRmMem) == 0) {
      continue;
    }
    for (const uint64_t size : {1, 2, 4, 7, 8}) {
      oracle_.SetCode(Encode(form, kMemoryChoice, 0));
      State state = AnyFormState();
      state.regs.gpr[kRsi] = kDataAt + kDataBytes - size;
      EXPECT_EQ(Difference(state), "")
          << Describe(Encode(form, kMemoryChoice, 0)) << ", " << size
          << " bytes mapped";
    }
  }
}

// MASKMOVQ and MASKMOVDQU store to a segment if they are told to.
TEST_F(MmxInsnTest, AMaskedMoveObeysItsSegment) {
  for (const std::vector<uint8_t>& code :
       {std::vector<uint8_t>{0x64, 0x0f, 0xf7, 0xca},
        std::vector<uint8_t>{0x64, 0x66, 0x0f, 0xf7, 0xca}}) {
    oracle_.SetCode(code);
    State state = AnyFormState();
    state.regs.fs_base = 64;
    state.regs.x87.regs[2].significand = ~uint64_t{0};
    state.regs.vec[0][2] = {{~uint64_t{0}, 0}};
    const uint64_t at = state.regs.gpr[kRdi] - kDataAt + 64;
    state.regs.vec[0][1].q[0] = state.regs.x87.regs[1].significand;
    const Outcome outcome = oracle_.RunOnMachine(state);
    uint64_t stored;
    std::memcpy(&stored, outcome.state.window.data() + at, sizeof(stored));
    EXPECT_EQ(stored, state.regs.vec[0][1].q[0]) << Describe(code);
  }
}

// F2 and F3 before an MMX opcode, where they select no instruction, are illegal
// on the CPU; they are never taken for the instruction without them.
TEST_F(MmxInsnTest, APrefixThatIsNoneIsRefused) {
  for (const uint8_t prefix : {uint8_t{0xf2}, uint8_t{0xf3}}) {
    oracle_.SetCode(std::vector<uint8_t>{prefix, 0x0f, 0xfc, 0xca});
    EXPECT_FALSE(oracle_.RunOnMachine(AnyFormState()).supported);
  }
}

}  // namespace
}  // namespace clew::machine
