// Goal: XSAVE and XRSTOR have the effect that the CPU has, on x87, SSE and AVX
// state and on memory, for each choice of components; what they refuse, the CPU
// refuses. A thread that begins with an area begins as if it had restored it.
// Method: random states, among them such as have components in their initial
// state; areas that XSAVE stored, with any components marked as stored. Oracle:
// the CPU, if it has AVX. Left out: the pointers to the last x87 instruction,
// and, but on Intel's CPUs, whether x87 that was used once counts as in its
// initial state.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstring>

#include "machine/xsave.h"
#include "tests/machine/vector/any_state.h"

namespace clew::machine {
namespace {

constexpr int kStates = 400;
constexpr size_t kAreaAt = kMemOperandAddr - kDataAt;  // in the window
constexpr size_t kComponents = kAreaAt + sizeof(FxsaveArea);
constexpr uint64_t kAllComponents = 7;
const std::vector<uint8_t> kXsave = {0x0f, 0xae, 0x26};   // [rsi]
const std::vector<uint8_t> kXrstor = {0x0f, 0xae, 0x2e};  // [rsi]

class SaveStateTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!x86::HostFeatures().Contains(
            {x86::Feature::kXsave, x86::Feature::kAvx})) {
      GTEST_SKIP() << "this CPU has no AVX";
    }
  }

  State AnySavedState() {
    State state = AnyState(random_);
    state.regs.x87 = AnyX87(random_);
    state.regs.mxcsr_mask = x86::HostMxcsrMask();
    for (VecLane& lane : state.regs.vec) {
      if (random_.Below(3) == 0) {
        lane = {};
      }
    }
    state.regs.gpr[kRax] = random_.Below(kAllComponents + 1);
    state.regs.gpr[kRdx] = 0;
    return state;
  }

  std::string Compare(const State& state) {
    Outcome machine = oracle_.RunOnMachine(state);
    const Outcome cpu = oracle_.RunOnCpu(state);
    if (!machine.supported) {
      return machine.detail;
    }
    const auto& window = cpu.state.window;
    auto& compared = machine.state.window;
    std::copy(window.begin() + kAreaAt + 6, window.begin() + kAreaAt + 24,
              compared.begin() + kAreaAt + 6);
    if (!state.regs.is_of_intel()) {
      compared[kComponents] = (compared[kComponents] & ~std::byte{1}) |
                              (window[kComponents] & std::byte{1});
    }
    return Difference(cpu, machine, 0);
  }

  // An area to restore from, with any components marked as stored.
  State AnyStateToRestore() {
    oracle_.SetCode(kXsave);
    State state = AnySavedState();
    state.regs.gpr[kRax] = kAllComponents;
    State result = AnySavedState();
    result.window = oracle_.RunOnMachine(state).state.window;
    std::fill_n(result.window.begin() + kComponents, sizeof(XsaveHeader),
                std::byte{0});
    result.window[kComponents] =
        static_cast<std::byte>(random_.Below(kAllComponents + 1));
    oracle_.SetCode(kXrstor);
    return result;
  }

  Oracle oracle_;
  Random random_{0xae};
};

TEST_F(SaveStateTest, XsaveAgreesWithTheCpu) {
  oracle_.SetCode(kXsave);
  for (int i = 0; i < kStates; ++i) {
    ASSERT_EQ(Compare(AnySavedState()), "") << "trial " << i;
  }
}

TEST_F(SaveStateTest, XrstorAgreesWithTheCpu) {
  for (int i = 0; i < kStates; ++i) {
    ASSERT_EQ(Compare(AnyStateToRestore()), "") << "trial " << i;
  }
}

TEST_F(SaveStateTest, AThreadBeginsWithWhatXrstorWouldRestore) {
  for (int i = 0; i < kStates; ++i) {
    State state = AnyStateToRestore();
    state.regs.gpr[kRax] = kAllComponents;
    const Outcome cpu = oracle_.RunOnCpu(state);
    Outcome begun = cpu;
    begun.state.regs.vec = state.regs.vec;
    begun.state.regs.mxcsr = state.regs.mxcsr;
    begun.state.regs.x87 = state.regs.x87;
    RestoreXsave(std::span(state.window).subspan(kAreaAt), begun.state.regs);
    ASSERT_EQ(Difference(cpu, begun, 0), "") << "trial " << i;
  }
}

TEST_F(SaveStateTest, AnAreaThatIsNotAlignedIsAFault) {
  for (const auto& code : {kXsave, kXrstor}) {
    State state = AnyStateToRestore();
    oracle_.SetCode(code);
    state.regs.gpr[kRsi] += 32;
    EXPECT_EQ(oracle_.RunOnMachine(state).signal, SIGSEGV);
    EXPECT_EQ(
        Difference(oracle_.RunOnCpu(state), oracle_.RunOnMachine(state), 0),
        "");
  }
}

// Bytes of the header that have to be zero, and reserved bits of MXCSR.
TEST_F(SaveStateTest, AnAreaThatBreaksItsFormatIsAFault) {
  struct Damage {
    size_t offset;
    std::byte value;
  };
  for (const auto& [offset, value] :
       {Damage{sizeof(FxsaveArea) + offsetof(XsaveHeader, xcomp_bv),
               std::byte{1}},
        Damage{sizeof(FxsaveArea) + offsetof(XsaveHeader, reserved),
               std::byte{1}},
        Damage{sizeof(FxsaveArea) + 7, std::byte{0x40}},
        Damage{
            offsetof(FxsaveArea, pointers) + offsetof(FxsaveMxcsr, mxcsr) + 3,
            std::byte{0x80}}}) {
    State state = AnyStateToRestore();
    state.regs.gpr[kRax] = kAllComponents;
    state.window[kAreaAt + offset] = value;
    EXPECT_EQ(oracle_.RunOnMachine(state).signal, SIGSEGV) << offset;
    EXPECT_EQ(
        Difference(oracle_.RunOnCpu(state), oracle_.RunOnMachine(state), 0), "")
        << offset;
  }
}

}  // namespace
}  // namespace clew::machine
