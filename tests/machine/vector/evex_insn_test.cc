// Goal: every instruction with EVEX, and every one on opmask registers, has the
// effect that the CPU has, on all of the ZMM, opmask and general registers,
// flags, MXCSR, x87 and memory.
// Method: every encoding that Zydis knows (evex_forms.cc); registers low, high
// and equal to each other, any writemask, merging and zeroing, memory with and
// without displacement, broadcast, static rounding, immediates; random states
// rich in boundary values. Oracle: the CPU, if it has AVX-512.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string_view>
#include <vector>

#include "tests/machine/vector/any_state.h"
#include "tests/machine/vector/evex_comparison.h"
#include "tests/machine/vector/evex_forms.h"
#include "tests/machine/vector/form_comparison.h"
#include "tests/machine/vector/sse_forms.h"

namespace clew::machine {
namespace {

constexpr int kQuickTrials = 6;
constexpr int kMoreTrials = 60;

class EvexInsnTest : public EvexComparison {
 protected:
  EvexInsnTest() : EvexComparison(512) {}
};

TEST_P(EvexInsnTest, EveryEvexFormAgreesWithTheCpu) {
  EachForm(AllEvexForms(),
           [&](const EvexForm& form) { CompareForm(form, form.has_imm); });
}

// They are all of the maps and prefixes in which there is a form.
constexpr std::array<EvexPart, 7> Parts(int trials) {
  return {{{"of_0f", trials, 1, 0},
           {"of_66_0f", trials, 1, 1},
           {"of_f3_0f", trials, 1, 2},
           {"of_f2_0f", trials, 1, 3},
           {"of_66_0f38", trials, 2, 1},
           {"of_f3_0f38", trials, 2, 2},
           {"of_66_0f3a", trials, 3, 1}}};
}
INSTANTIATE_TEST_SUITE_P(Parts, EvexInsnTest,
                         testing::ValuesIn(Parts(kQuickTrials)), PartName);
// In tools/test --all.
INSTANTIATE_TEST_SUITE_P(More, EvexInsnTest,
                         testing::ValuesIn(Parts(kMoreTrials)), PartName);

class EvexOtherInsnTest : public EvexComparison {
 protected:
  EvexOtherInsnTest() : EvexComparison(513) {}
};

// Some elements are where no memory is.
TEST_P(EvexOtherInsnTest, EveryGatherAndScatterAgreesWithTheCpu) {
  EachForm(AllVsibForms(),
           [&](const EvexForm& form) { CompareForm(form, true); });
}

TEST_P(EvexOtherInsnTest, EveryOpmaskInsnAgreesWithTheCpu) {
  EachForm(AllOpmaskForms(),
           [&](const EvexForm& form) { CompareForm(form, true); });
}

INSTANTIATE_TEST_SUITE_P(Parts, EvexOtherInsnTest,
                         testing::Values(EvexPart{"all", kQuickTrials}),
                         PartName);
INSTANTIATE_TEST_SUITE_P(More, EvexOtherInsnTest,
                         testing::Values(EvexPart{"all", kMoreTrials}),
                         PartName);

TEST(EvexFormsTest, NoFormIsLostOrAdded) {
  EXPECT_EQ(AllEvexForms().size(), 4890u);
  EXPECT_EQ(AllVsibForms().size(), 48u);
  EXPECT_EQ(AllOpmaskForms().size(), 67u);
  size_t in_parts = 0;
  for (const EvexForm& form : AllEvexForms()) {
    for (const EvexPart& part : Parts(0)) {
      in_parts += part.Has(form) ? 1 : 0;
    }
  }
  EXPECT_EQ(in_parts, AllEvexForms().size());
}

TEST(EvexFormsTest, WhatIsNotCarriedOutIsListed) {
  Oracle oracle;
  Random random(514);
  const State state = AnyState(random);
  std::set<std::string_view> missing;
  for (const EvexForms* forms :
       {&AllEvexForms(), &AllVsibForms(), &AllOpmaskForms()}) {
    for (const EvexForm& form : *forms) {
      EvexChoice choice;
      choice.vvvv = form.vvvv != EvexField::kNothing ? 3 : 0;
      choice.opmask = form.must_mask ? 1 : 0;
      oracle.SetCode(Encode(form, choice, 1));
      if (x86::HostFeatures().Contains(form.needs) &&
          !oracle.RunOnMachine(state).supported) {
        missing.insert(form.mnemonic);
      }
    }
  }
  fmt::print("not carried out: {}\n", fmt::join(missing, " "));
  EXPECT_EQ(missing, NotCarriedOut());
}

// What GFNI, VAES and VPCLMULQDQ have without EVEX.
class LateVexInsnTest : public FormComparison {
 protected:
  LateVexInsnTest() : FormComparison(515) {}

  void SetUp() override {
    if (!x86::HostFeatures().Contains({x86::Feature::kGfni, x86::Feature::kVaes,
                                       x86::Feature::kVpclmulqdq})) {
      GTEST_SKIP() << "this CPU has no GFNI, no VAES or no VPCLMULQDQ";
    }
  }
  State AnyFormState() override {
    State state = AnyState(random_);
    state.regs.mxcsr_mask = x86::HostMxcsrMask();
    return state;
  }
  std::string Difference(const State& state) override {
    return oracle_.Compare(state, 0);
  }
};

// VGF2P8MULB, VGF2P8AFFINEQB, VGF2P8AFFINEINVQB, also without VEX; VAESENC and
// its kin, VPCLMULQDQ, of 256 bits.
SseForms LateVexForms() {
  SseForms forms;
  const auto add = [&](SseForm form, std::initializer_list<uint8_t> lengths) {
    for (const uint8_t lanes : lengths) {
      form.vex_lanes = lanes;
      form.vvvv = lanes != 0;
      form.rm = kRmXmm | (lanes != 0 ? kRmMem : kRmMemAligned);
      form.rex_w = lanes != 0 && form.map == k0f3a && form.opcode != 0x44;
      forms.push_back(form);
    }
  };
  add({0x66, k0f38, 0xcf, kRmXmm}, {0, 1, 2});
  for (const uint8_t opcode : {uint8_t{0xce}, uint8_t{0xcf}}) {
    add({0x66, k0f3a, opcode, kRmXmm, false, kEvery}, {0, 1, 2});
  }
  for (uint8_t opcode = 0xdc; opcode <= 0xdf; ++opcode) {
    add({0x66, k0f38, opcode, kRmXmm}, {2});
  }
  add({0x66, k0f3a, 0x44, kRmXmm, false, kEvery}, {2});
  return forms;
}

TEST_F(LateVexInsnTest, EveryFormAgreesWithTheCpu) {
  EXPECT_EQ(CompareAll(LateVexForms()), 28u) << "a form was lost or added";
}

}  // namespace
}  // namespace clew::machine
