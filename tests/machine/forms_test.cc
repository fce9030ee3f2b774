// Goal: every integer instruction form that the machine claims has the effect
// it has on the CPU: registers, defined flags, memory, faults.
// Method: differential. Encodings are generated (opcode x prefixes x ModRM),
// those that the machine claims run on both from boundary and random states;
// the seed is printed. What the machine refuses is listed and never run.

#include "tests/machine/forms.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>

#include "common/sanitizer.h"
#include "tests/machine/oracle.h"
#include "tests/support/hex.h"

namespace clew::machine {
namespace {

uint64_t Seed() {
  const char* seed = std::getenv("CLEW_SEED");
  return seed != nullptr ? std::strtoull(seed, nullptr, 0) : 1;
}

// Natively they show the trap flag that the oracle needs. insn_test.cc has
// them.
bool NotComparable(std::string_view mnemonic) {
  static const std::set<std::string_view> names = {"pushf", "pushfq", "popf",
                                                   "popfq", "int3"};
  return names.contains(mnemonic);
}

bool IsString(std::string_view mnemonic) {
  static const std::set<std::string_view> stems = {"cmps", "lods", "movs",
                                                   "scas", "stos"};
  return mnemonic.size() > 4 && stems.contains(mnemonic.substr(0, 4)) &&
         std::string_view("bwdq").contains(mnemonic[4]);
}

bool Has(const std::vector<uint8_t>& code, uint8_t prefix) {
  return std::ranges::find(code.begin(), code.end() - 1, prefix) !=
         code.end() - 1;
}

// Models of CPUs differ in what an instruction leaves behind that faults. Makes
// `cpu` equal to `machine` in just that:
// - which operand of CMPS faults first, where both do;
// - the arithmetic flags, where CMPS or SCAS had compared before it faulted;
// - the upper halves of the registers that a 32-bit string form counts in;
// - the return address of a CALL whose target is not canonical, below the stack
//   pointer.
void LeaveOpenAfterFault(const Form& form, const State& before,
                         const Outcome& machine, Outcome& cpu) {
  if (machine.signal == 0 || cpu.signal == 0) {
    return;
  }
  Registers& regs = cpu.state.regs;
  const Registers& wanted = machine.state.regs;
  const std::string_view mnemonic = form.mnemonic;
  const bool is_string = IsString(mnemonic);
  if (is_string && mnemonic.starts_with("cmps")) {
    cpu.has_addr = false;
  }
  if (is_string && (mnemonic.starts_with("cmps") ||  //
                    mnemonic.starts_with("scas"))) {
    regs.rflags =
        (regs.rflags & ~kFlagsArithmetic) | (wanted.rflags & kFlagsArithmetic);
  }
  if (is_string && Has(form.code, 0x67)) {
    constexpr uint64_t kLower = 0xffffffff;
    for (const Gpr gpr : {kRcx, kRsi, kRdi}) {
      regs.gpr[gpr] = (regs.gpr[gpr] & kLower) | (wanted.gpr[gpr] & ~kLower);
    }
  }
  const uint64_t pushed = before.regs.gpr[kRsp] - 8 - kDataAt;
  if (mnemonic == "call" && pushed <= kDataBytes - 8) {
    std::memcpy(&cpu.state.window[pushed], &machine.state.window[pushed], 8);
  }
}

// From how many states each form is run.
class FormsTest : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (kAddressSanitizer) {
      GTEST_SKIP() << "AddressSanitizer maps low addresses, where the machine "
                      "has nothing";
    }
  }

  // Returns false if the machine does not claim the form.
  bool CompareForm(const Form& form) {
    oracle_.SetCode(form.code);
    for (int i = 0; i < GetParam(); ++i) {
      State state = MakeState(random_);
      if (form.mnemonic == "shld" || form.mnemonic == "shrd") {
        // A count above the width is undefined (16-bit operands).
        state.regs.gpr[kRcx] &= 0x0f;
      }
      if (i == 0 && !oracle_.RunOnMachine(state).supported) {
        return false;
      }
      const std::string difference = Compare(form, state);
      if (!difference.empty()) {
        ++failures_[form.mnemonic];
        if (failures_[form.mnemonic] <= 3) {
          ADD_FAILURE() << form.mnemonic << " " << test::Hex(form.code) << ": "
                        << difference;
        }
        return true;
      }
    }
    return true;
  }

  std::string Compare(const Form& form, const State& state) {
    const Outcome machine = oracle_.RunOnMachine(state);
    if (!machine.supported) {
      return "not supported: " + machine.detail;
    }
    Outcome cpu = oracle_.RunOnCpu(state);
    LeaveOpenAfterFault(form, state, machine, cpu);
    return Difference(cpu, machine, form.undefined_flags);
  }

  void CompareMap(int map, uint8_t first, uint8_t last) {
    CompareForms(MakeForms(map, first, last, random_));
  }

  void CompareForms(const std::vector<Form>& all) {
    fmt::print("seed {} (set CLEW_SEED to repeat)\n", Seed());
    std::map<std::string, int> tested;
    std::set<std::string> refused;
    int forms = 0;
    for (const Form& form : all) {
      if (!NotComparable(form.mnemonic)) {
        if (CompareForm(form)) {
          ++tested[form.mnemonic];
          ++forms;
        } else {
          refused.insert(form.mnemonic);
        }
      }
    }
    Report(forms, tested, refused);
    EXPECT_GT(forms, 0);
  }

  static void Report(int forms, const std::map<std::string, int>& tested,
                     const std::set<std::string>& refused) {
    fmt::print("{} forms of {} mnemonics compared, {} states each:", forms,
               tested.size(), GetParam());
    for (const auto& [mnemonic, count] : tested) {
      fmt::print(" {}:{}", mnemonic, count);
    }
    fmt::print("\nforms refused of:");
    for (const std::string& mnemonic : refused) {
      fmt::print(" {}", mnemonic);
    }
    fmt::print("\n");
  }

  Oracle oracle_;
  Random random_{Seed()};
  std::map<std::string, int> failures_;
};

TEST_P(FormsTest, OneByteOpcodesLow) { CompareMap(0, 0x00, 0x3f); }
TEST_P(FormsTest, OneByteOpcodesMiddle) { CompareMap(0, 0x50, 0x8f); }
// Up to the x87 escapes, which have a test of their own.
TEST_P(FormsTest, OneByteOpcodesHigh) { CompareMap(0, 0x90, 0xd7); }
TEST_P(FormsTest, OneByteOpcodesTop) { CompareMap(0, 0xe0, 0xff); }
TEST_P(FormsTest, TwoByteMovesAndConditions) { CompareMap(1, 0x40, 0x4f); }
TEST_P(FormsTest, TwoByteJumpsAndSets) { CompareMap(1, 0x80, 0x9f); }
// AE is MXCSR, FXSAVE and the fences: with the SSE families.
TEST_P(FormsTest, TwoByteBits) { CompareMap(1, 0xa0, 0xad); }
TEST_P(FormsTest, TwoByteIntegers) { CompareMap(1, 0xaf, 0xc1); }
TEST_P(FormsTest, TwoByteExchangeAndSwap) { CompareMap(1, 0xc7, 0xcf); }
TEST_P(FormsTest, TwoByteHints) { CompareMap(1, 0x18, 0x1f); }
// CRC32, MOVBE, ADCX, ADOX.
TEST_P(FormsTest, ThreeByteIntegers) { CompareMap(2, 0xf0, 0xf6); }
TEST_P(FormsTest, VexIntegers) {
  if (!x86::HostFeatures().Contains(
          {x86::Feature::kBmi1, x86::Feature::kBmi2})) {
    GTEST_SKIP() << "this CPU has no BMI2";
  }
  CompareForms(MakeVexForms(random_));
}

INSTANTIATE_TEST_SUITE_P(Few, FormsTest, testing::Values(2));
// In tools/test --all.
INSTANTIATE_TEST_SUITE_P(More, FormsTest, testing::Values(6));

}  // namespace
}  // namespace clew::machine
