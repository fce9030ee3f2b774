// Goal: every SSE form has the effect that the CPU has, on general registers,
// flags, XMM registers, MXCSR, x87 and memory; a misaligned operand faults.
// Method: every form of sse_forms.cc, with register and memory operands, low
// and high registers, source equal to destination, all 256 immediates; random
// states rich in boundary values, all rounding modes, FTZ and DAZ. Oracle: the
// CPU.

#include <gtest/gtest.h>
#include <signal.h>

#include "machine/decode.h"
#include "tests/machine/vector/any_state.h"
#include "tests/machine/vector/sse_forms.h"

namespace clew::machine {
namespace {

constexpr uint64_t kSeed = 20;
constexpr int kTrials = 60;
constexpr int kTrialsPerImm = 2;

std::string Describe(const std::vector<uint8_t>& code) {
  return Decoder().Describe(kCodeAt, std::as_bytes(std::span(code)));
}

class SseInsnTest : public testing::Test {
 protected:
  // Runs `code` from `count` random states, with rsi moved on by up to
  // `misalignment` bytes; false after the first failure.
  bool Compare(const std::vector<uint8_t>& code, int count,
               uint64_t misalignment = 0) {
    oracle_.SetCode(code);
    for (int i = 0; i < count; ++i) {
      State state = AnyState(random_);
      state.regs.gpr[kRsi] += random_.Below(misalignment + 1);
      const std::string difference = oracle_.Compare(state, 0);
      if (!difference.empty()) {
        ADD_FAILURE() << Describe(code) << ", seed " << kSeed << "\n"
                      << difference;
        return false;
      }
      ++compared_;
    }
    return true;
  }

  void CompareForm(const SseForm& form) {
    const int imms = form.imm == ImmKind::kEvery ? 256 : 1;
    const int count = imms == 1 ? kTrials : kTrialsPerImm;
    for (const Choice& choice : ChoicesFor(form)) {
      const uint64_t misalignment =
          choice.memory && (form.rm & kRmMem) != 0 ? 15 : 0;
      for (int imm = 0; imm < imms; ++imm) {
        const auto code = Encode(form, choice, static_cast<uint8_t>(imm));
        if (!Compare(code, count, misalignment)) {
          return;
        }
      }
    }
  }

  Oracle oracle_;
  Random random_{kSeed};
  int64_t compared_ = 0;
};

TEST_F(SseInsnTest, EveryFormAgreesWithTheCpu) {
  size_t forms = 0;
  for (const SseForm& form : AllSseForms()) {
    CompareForm(form);
    const bool in_register = (form.rm & (kRmXmm | kRmGpr)) != 0;
    const bool in_memory = (form.rm & (kRmMem | kRmMemAligned)) != 0;
    forms += size_t{in_register} + size_t{in_memory};
  }
  std::cout << forms << " forms, " << compared_ << " comparisons\n";
  EXPECT_EQ(forms, 506u) << "a form was lost or added";
}

TEST_F(SseInsnTest, AMisalignedOperandIsTheFaultThatItIsOnTheCpu) {
  for (const SseForm& form : AllSseForms()) {
    if ((form.rm & kRmMemAligned) == 0) {
      continue;
    }
    const auto code = Encode(form, {1, 0, true}, 0);
    Compare(code, 4, 15);
    State state = AnyState(random_);
    state.regs.gpr[kRsi] += 8;
    EXPECT_EQ(oracle_.RunOnMachine(state).signal, SIGSEGV) << Describe(code);
  }
}

TEST_F(SseInsnTest, AnUnmappedOperandChangesNothing) {
  for (const SseForm& form : AllSseForms()) {
    if ((form.rm & (kRmMem | kRmMemAligned)) == 0) {
      continue;
    }
    const auto code = Encode(form, {1, 0, true}, 0);
    oracle_.SetCode(code);
    State state = AnyState(random_);
    state.regs.gpr[kRsi] = kDataAt + kDataBytes;
    EXPECT_EQ(oracle_.Compare(state, 0), "") << Describe(code);
    EXPECT_EQ(oracle_.RunOnMachine(state).signal, SIGSEGV) << Describe(code);
  }
}

}  // namespace
}  // namespace clew::machine
