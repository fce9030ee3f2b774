// Goal: every x87 form has the effect that the CPU has, on the register stack,
// tags, status and control word, flags and memory, stack faults included.
// Method: every form of x87_forms.cc from random states rich in special values,
// all roundings and precisions, stacks from empty to full. Condition codes that
// the manual leaves undefined are not compared. Oracle: the CPU.

#include <gtest/gtest.h>

#include <cstring>

#include "machine/decode.h"
#include "machine/vector/x87_op.h"
#include "tests/machine/vector/any_state.h"
#include "tests/machine/vector/x87_forms.h"

namespace clew::machine {
namespace {

constexpr uint64_t kX87Seed = 87;
constexpr int kTrials = 200;
constexpr size_t kOperand = kMemOperandAddr - kDataAt;  // in the window

void PutOperand(State& state, const void* bytes, size_t size) {
  std::memcpy(state.window.data() + kOperand, bytes, size);
}

void PutOperand(State& state, X87Data data, Random& random) {
  std::array<uint8_t, 10> bytes;
  if (data == X87Data::kFloat80) {
    const Float80 value = AnyFloat80(random);
    std::memcpy(bytes.data(), &value.significand, 8);
    std::memcpy(bytes.data() + 8, &value.sign_exponent, 2);
  } else if (data == X87Data::kBcd) {
    for (auto& byte : bytes) {
      byte = static_cast<uint8_t>(random.Below(10) << 4 | random.Below(10));
    }
    bytes[9] = random.Below(2) != 0 ? 0x80 : 0;
  } else if (data == X87Data::kControl) {
    const uint64_t control = random.Next() | 0x3f;
    std::memcpy(bytes.data(), &control, 2);
  } else {
    return;
  }
  PutOperand(state, bytes.data(), bytes.size());
}

bool TopIsNan(const X87& x87) {
  return (x87.regs[x87.status >> 11 & 7].sign_exponent & 0x7fff) == 0x7fff;
}

class X87InsnTest : public testing::Test {
 protected:
  State AnyX87State() {
    State state = AnyState(random_);
    state.regs.x87 = AnyX87(random_);
    return state;
  }

  // Empty, or how machine and CPU differ. Not compared: `undefined` bits of the
  // status word, and the bytes of the operand that `ignored` has.
  std::string Compare(const State& state, uint16_t undefined,
                      uint16_t undefined_if_nan = 0,
                      std::span<const std::pair<size_t, size_t>> ignored = {}) {
    Outcome machine = oracle_.RunOnMachine(state);
    if (!machine.supported) {
      return machine.detail;
    }
    const Outcome cpu = oracle_.RunOnCpu(state);
    const uint16_t cpu_status = cpu.state.regs.x87.status;
    if (TopIsNan(cpu.state.regs.x87)) {
      undefined |= undefined_if_nan;
    }
    uint16_t& status = machine.state.regs.x87.status;
    status =
        static_cast<uint16_t>((status & ~undefined) | (cpu_status & undefined));
    for (const auto& [first, last] : ignored) {
      std::copy(cpu.state.window.begin() + kOperand + first,
                cpu.state.window.begin() + kOperand + last,
                machine.state.window.begin() + kOperand + first);
    }
    return Difference(cpu, machine, 0);
  }

  void CompareForm(const X87Form& form, int trials) {
    const std::vector<uint8_t> code = {form.opcode, form.modrm};
    oracle_.SetCode(code);
    for (int i = 0; i < trials; ++i) {
      State state = AnyX87State();
      PutOperand(state, form.data, random_);
      ++compared_;
      const std::string difference =
          Compare(state, form.undefined_status, form.undefined_if_nan);
      if (!difference.empty()) {
        ADD_FAILURE() << Describe(code) << ", seed " << kX87Seed << "\n"
                      << Describe(state.regs.x87) << difference;
        return;
      }
    }
  }

  static std::string Describe(const std::vector<uint8_t>& code) {
    return Decoder().Describe(kCodeAt, std::as_bytes(std::span(code)));
  }

  static std::string Describe(const X87& x87) {
    std::string text = fmt::format("control {:#x}, status {:#x}, tags {:#x}\n",
                                   x87.control, x87.status, x87.tag);
    for (unsigned i = 0; i < 8; ++i) {
      const Float80& reg = x87.regs[((x87.status >> 11) + i) & 7];
      text += fmt::format("st({}) {:04x}:{:016x}\n", i, reg.sign_exponent,
                          reg.significand);
    }
    return text;
  }

  Oracle oracle_;
  Random random_{kX87Seed};
  int64_t compared_ = 0;
};

// How many trials.
class X87FormsTest : public X87InsnTest,
                     public testing::WithParamInterface<int> {};

TEST_P(X87FormsTest, EveryFormAgreesWithTheCpu) {
  const auto forms = AllX87Forms();
  for (const X87Form& form : forms) {
    CompareForm(form, GetParam());
  }
  std::cout << forms.size() << " forms, " << compared_ << " comparisons\n";
  EXPECT_EQ(forms.size(), 409u) << "a form was lost or added";
}

INSTANTIATE_TEST_SUITE_P(Quarter, X87FormsTest, testing::Values(kTrials / 4));
// In tools/test --all.
INSTANTIATE_TEST_SUITE_P(More, X87FormsTest, testing::Values(kTrials));

// The pointers to the last x87 instruction and its operand are not kept.
constexpr std::pair<size_t, size_t> kEnvironmentPointers[] = {{12, 26}};
constexpr std::pair<size_t, size_t> kFxsaveUncompared[] = {
    {6, 24}, {28, 32}, {416, 512}};

TEST_F(X87InsnTest, EnvironmentIsStoredAsTheCpuStoresIt) {
  for (const uint8_t opcode :
       {uint8_t{0xd9}, uint8_t{0xdd}}) {  // FNSTENV, FNSAVE
    oracle_.SetCode(std::vector<uint8_t>{opcode, 6 << 3 | 6});
    for (int i = 0; i < kTrials; ++i) {
      ASSERT_EQ(Compare(AnyX87State(), 0, 0, kEnvironmentPointers), "");
    }
  }
}

TEST_F(X87InsnTest, EnvironmentIsLoadedAsTheCpuLoadsIt) {
  for (const uint8_t opcode :
       {uint8_t{0xd9}, uint8_t{0xdd}}) {  // FLDENV, FRSTOR
    oracle_.SetCode(std::vector<uint8_t>{opcode, 4 << 3 | 6});
    for (int i = 0; i < kTrials; ++i) {
      State state = AnyX87State();
      const X87 image = AnyX87(random_);
      std::array<uint16_t, 54> words = {};
      words[0] = image.control;
      words[2] = image.status;
      words[4] = static_cast<uint16_t>(random_.Next());
      for (size_t reg = 0; reg < 8; ++reg) {
        std::memcpy(&words[14 + 5 * reg], &image.regs[reg].significand, 8);
        words[18 + 5 * reg] = image.regs[reg].sign_exponent;
      }
      PutOperand(state, words.data(), sizeof(words));
      ASSERT_EQ(Compare(state, 0), "") << Describe(image);
    }
  }
}

TEST_F(X87InsnTest, FxsaveAndFxrstorAgreeWithTheCpu) {
  for (const bool rex_w : {false, true}) {
    std::vector<uint8_t> code = {0x0f, 0xae, 6};
    if (rex_w) {
      code.insert(code.begin(), 0x48);
    }
    for (int i = 0; i < kTrials; ++i) {
      oracle_.SetCode(code);
      State state = AnyX87State();
      std::fill_n(state.window.begin() + kOperand, 512, std::byte{0});
      ASSERT_EQ(Compare(state, 0, 0, kFxsaveUncompared), "");
      State other = AnyX87State();
      std::copy_n(oracle_.RunOnMachine(state).state.window.begin() + kOperand,
                  512, other.window.begin() + kOperand);
      code.back() = 1 << 3 | 6;
      oracle_.SetCode(code);
      ASSERT_EQ(Compare(other, 0), "");
      code.back() = 6;
    }
  }
}

// Goal: told the CPU's MXCSR_MASK, FXSAVE stores what the CPU stores, reserved
// bytes too; left out are the pointers to the last x87 instruction.
constexpr std::pair<size_t, size_t> kFxsavePointers[] = {{6, 24}};

TEST_F(X87InsnTest, FxsaveOfARealCpuAgreesInEveryByte) {
  oracle_.SetCode(std::vector<uint8_t>{0x0f, 0xae, 6});
  for (int i = 0; i < kTrials; ++i) {
    State state = AnyX87State();
    state.regs.mxcsr_mask = x86::HostMxcsrMask();
    std::fill_n(state.window.begin() + kOperand, 512, std::byte{0xaa});
    ASSERT_EQ(Compare(state, 0, 0, kFxsavePointers), "");
  }
}

// Goal: bytes that QEMU 7.2 does not write keep what was there.
TEST_F(X87InsnTest, FxsaveLeavesReservedBytesAlone) {
  oracle_.SetCode(std::vector<uint8_t>{0x0f, 0xae, 6});
  State state = AnyX87State();
  std::fill_n(state.window.begin() + kOperand, 512, std::byte{0xaa});
  const State after = oracle_.RunOnMachine(state).state;
  const auto byte = [&](size_t i) { return after.window[kOperand + i]; };
  for (const size_t i : {6u, 7u, 42u, 47u, 154u, 159u, 416u, 511u}) {
    EXPECT_EQ(byte(i), std::byte{0xaa}) << i;
  }
  for (const size_t i : {5u, 8u, 23u, 30u, 31u}) {
    EXPECT_EQ(byte(i), std::byte{0}) << i;
  }
}

// Goal: an exception that is not masked is pending in the status word and never
// delivered, as under QEMU user mode.
TEST_F(X87InsnTest, AnUnmaskedExceptionStaysPending) {
  oracle_.SetCode(std::vector<uint8_t>{0xd8, 0xf1});  // fdiv st, st(1)
  State state = AnyState(random_);
  X87& x87 = state.regs.x87;
  x87.control = 0x37b;  // division by zero is not masked
  x87.tag = 0xfff4;     // r0 valid, r1 zero
  x87.regs[0] = {1ull << 63, 0x3fff};
  const Outcome outcome = oracle_.RunOnMachine(state);
  ASSERT_EQ(outcome.signal, 0);
  EXPECT_EQ(outcome.state.regs.x87.status, 0x8084);
  EXPECT_EQ(outcome.state.regs.x87.regs[0], (Float80{1ull << 63, 0x7fff}));
}

}  // namespace
}  // namespace clew::machine
