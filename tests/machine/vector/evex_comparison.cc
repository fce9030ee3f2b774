#include "tests/machine/vector/evex_comparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <utility>
#include <vector>

namespace clew::machine {
namespace {

constexpr uint8_t kAnyVector = 32;

// General registers that may take any value: not RSP, not RSI.
constexpr std::array<uint8_t, 14> kGprs = {0, 1,  2,  3,  5,  7,  8,
                                           9, 10, 11, 12, 13, 14, 15};

// The number that a field of this kind takes for any number.
uint8_t Fit(EvexField field, uint8_t number) {
  switch (field) {
    case EvexField::kVector:
      return number;
    case EvexField::kGpr:
      return kGprs[number % kGprs.size()];
    case EvexField::kOpmask:
      return number % kOpmasks;
    default:
      return 0;
  }
}

uint8_t Below(Random& random, uint8_t bound) {
  return static_cast<uint8_t>(random.Below(bound));
}

// Those of ModRM.reg, ModRM.rm, EVEX.vvvv.
std::array<uint8_t, 3> AnyRegisters(int trial, Random& random) {
  const auto from = [&](uint8_t first, uint8_t count) {
    std::array<uint8_t, 3> numbers;
    for (uint8_t& number : numbers) {
      number = static_cast<uint8_t>(first + Below(random, count));
    }
    return numbers;
  };
  std::array<uint8_t, 3> numbers = from(0, kAnyVector);
  switch (trial % 6) {
    case 0:
      return from(0, 8);
    case 1:
      return from(8, 8);
    case 2:
      return from(16, 16);
    case 3:
      numbers.fill(numbers[0]);
      return numbers;
    case 4:  // the destination is a source
      numbers[1 + random.Below(2)] = numbers[0];
      return numbers;
    default:
      return numbers;
  }
}

// The registers that an encoding names, and the writemask, for messages.
std::string InputsOf(const EvexForm& form, const EvexChoice& choice,
                     const Registers& regs) {
  std::string text = fmt::format("mxcsr {:#x}", regs.mxcsr);
  if (choice.opmask != 0) {
    text +=
        fmt::format(", k{} {:#x}", choice.opmask, regs.opmask[choice.opmask]);
  }
  for (const auto& [field, number] :
       {std::pair(form.reg, choice.reg), std::pair(form.vvvv, choice.vvvv),
        std::pair(form.rm, choice.rm)}) {
    if (field == EvexField::kOpmask) {
      text += fmt::format(", k{} {:#x}", number, regs.opmask[number]);
    } else if (field == EvexField::kVector) {
      text += fmt::format(", zmm{}", number);
      for (unsigned i = kVecQuads; i-- > 0;) {
        text += fmt::format(" {:016x}", regs.quad(number, i));
      }
    }
  }
  return text;
}

}  // namespace

const std::set<std::string_view>& NotCarriedOut() {
  static const std::set<std::string_view> mnemonics = {};
  return mnemonics;
}

void EvexComparison::SetUp() {
  using x86::Feature;
  if (!x86::HostFeatures().Contains({Feature::kAvx512f, Feature::kAvx512cd,
                                     Feature::kAvx512bw, Feature::kAvx512dq,
                                     Feature::kAvx512vl})) {
    GTEST_SKIP() << "this host has no AVX-512";
  }
}

void EvexComparison::TearDown() {
  if (forms_ == 0) {
    return;
  }
  fmt::print("{} forms, {} comparisons; not supported: {}; differ: {}\n",
             forms_, compared_, fmt::join(not_supported_, " "), differ_);
}

// Of this CPU, not of QEMU.
State EvexComparison::AnyFormState() {
  State state = AnyState(random_);
  state.regs.mxcsr_mask = x86::HostMxcsrMask();
  return state;
}

std::string EvexComparison::Difference(const State& state) {
  return oracle_.Compare(state, 0);
}

EvexChoice EvexComparison::AnyChoice(const EvexForm& form, int trial) {
  EvexChoice choice;
  const auto [reg, rm, vvvv] = AnyRegisters(trial, random_);
  choice.reg = Fit(form.reg, reg);
  choice.rm = Fit(form.rm, rm);
  choice.vvvv = Fit(form.vvvv, vvvv);
  if (form.must_mask || (form.writemask && random_.Below(3) != 0)) {
    choice.opmask = static_cast<uint8_t>(1 + Below(random_, kOpmasks - 1));
    choice.zeroing = form.zeroing && random_.Below(2) != 0;
  }
  if (form.in_memory() && random_.Below(2) != 0) {
    choice.disp8 = static_cast<int8_t>(Below(random_, 9) - 4);
  }
  choice.indexed = form.rm_kind == EvexRm::kMemory && random_.Below(4) == 0;
  if (form.rm_kind == EvexRm::kElements) {
    choice.scale = Below(random_, 4);
    choice.index = Below(random_, kAnyVector);
    if (choice.index == choice.reg) {
      choice.index ^= 1;  // a gather to its own index is undefined
    }
  }
  return choice;
}

// Times 1 << scale from rsi on: mostly within the window, where other elements
// and a displacement still are, some before and behind it.
uint64_t EvexComparison::AnyIndex(unsigned scale) {
  int64_t offset = static_cast<int64_t>(random_.Below(3400)) - 800;
  if (random_.Below(32) == 0) {
    offset = random_.Below(2) == 0 ? -2000 : 4000;
  }
  return static_cast<uint64_t>(offset >> scale);
}

State EvexComparison::AnyStateFor(const EvexForm& form,
                                  const EvexChoice& choice) {
  State state = AnyFormState();
  Registers& regs = state.regs;
  if (form.rm_kind == EvexRm::kMemory && !form.aligned) {
    regs.gpr[kRsi] += random_.Below(2) != 0 ? random_.Below(64) : 0;
  }
  if (choice.indexed) {
    regs.gpr[kR13] = random_.Below(16);
    regs.gpr[kR14] = regs.gpr[kRsi] - 2 * regs.gpr[kR13];
  }
  if (form.rm_kind == EvexRm::kElements) {
    const bool is_of_quads = (form.opcode & 1) != 0;
    for (unsigned i = 0; i < kVecQuads; ++i) {
      const uint64_t index = AnyIndex(choice.scale);
      const uint64_t other = AnyIndex(choice.scale);
      regs.quad(choice.index, i) =
          is_of_quads ? index : other << 32 | (index & 0xffffffff);
    }
  }
  return state;
}

EvexComparison::Verdict EvexComparison::Compare(const EvexForm& form,
                                                const EvexChoice& choice,
                                                uint8_t imm,
                                                const State& state) {
  constexpr int kShown = 2;
  const std::vector<uint8_t> code = Encode(form, choice, imm);
  oracle_.SetCode(code);
  const Outcome outcome = oracle_.RunOnMachine(state);
  signal_ = outcome.signal;
  if (!outcome.supported) {
    if (not_supported_.insert(form.mnemonic).second &&
        !NotCarriedOut().contains(form.mnemonic)) {
      ADD_FAILURE() << form.mnemonic << ": " << outcome.detail;
    }
    return Verdict::kNotSupported;
  }
  ++compared_;
  const std::string difference =
      clew::machine::Difference(oracle_.RunOnCpu(state), outcome, 0);
  if (difference.empty()) {
    return Verdict::kAgree;
  }
  if (++differ_[form.mnemonic] <= kShown) {
    ADD_FAILURE() << Describe(code) << ", "
                  << InputsOf(form, choice, state.regs) << "\n"
                  << difference;
  }
  return Verdict::kDiffer;
}

void EvexComparison::CompareForm(const EvexForm& form, bool has_many) {
  const int trials = GetParam().trials * (has_many ? 5 : 1);
  for (int trial = 0; trial < trials; ++trial) {
    const EvexChoice choice = AnyChoice(form, trial);
    const State state = AnyStateFor(form, choice);
    if (Compare(form, choice, next_imm_++, state) != Verdict::kAgree) {
      return;
    }
  }
}

}  // namespace clew::machine
