// Goal: XSAVE, XSAVEC and XRSTOR have the effect that the CPU has, on x87, SSE,
// AVX and AVX-512 state and on memory, for each choice of components; what they
// refuse, the CPU refuses. A thread that begins with an area begins as if it
// had restored it. Method: random states, among them such as have components in
// their initial state; areas that XSAVE or XSAVEC stored, with any components
// marked as stored. Oracle: the CPU, if it has AVX; of AVX-512, if it has that.
// Left out: the pointers to the last x87 instruction, and, but on Intel's CPUs,
// whether x87 that was used once counts as in its initial state.

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
const std::vector<uint8_t> kXsave = {0x0f, 0xae, 0x26};   // [rsi]
const std::vector<uint8_t> kXsavec = {0x0f, 0xc7, 0x26};  // [rsi]
const std::vector<uint8_t> kXrstor = {0x0f, 0xae, 0x2e};  // [rsi]

class SaveStateTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!x86::HostFeatures().Contains(
            {x86::Feature::kXsave, x86::Feature::kAvx})) {
      GTEST_SKIP() << "this CPU has no AVX";
    }
  }

  static uint64_t AllComponents() {
    return x86::HostFeatures().Has(x86::Feature::kAvx512f) ? 0xe7 : 7;
  }
  uint64_t AnyComponents() { return random_.Next() & AllComponents(); }

  State AnySavedState() {
    State state = AnyState(random_);
    state.regs.x87 = AnyX87(random_);
    state.regs.mxcsr_mask = x86::HostMxcsrMask();
    for (const unsigned component :
         {kComponentSse, kComponentAvx, kComponentOpmask, kComponentZmm,
          kComponentHighZmm}) {
      if (random_.Below(3) == 0) {
        RestoreComponent(component, {}, state.regs);
      }
    }
    state.regs.gpr[kRax] = AnyComponents();
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
    state.regs.gpr[kRax] = AllComponents();
    State result = AnySavedState();
    result.window = oracle_.RunOnMachine(state).state.window;
    std::fill_n(result.window.begin() + kComponents, sizeof(XsaveHeader),
                std::byte{0});
    result.window[kComponents] = static_cast<std::byte>(AnyComponents());
    oracle_.SetCode(kXrstor);
    return result;
  }

  // The same of the compacted format, with room for any components.
  State AnyStateToRestoreCompacted() {
    oracle_.SetCode(kXsavec);
    const State state = AnySavedState();
    const uint64_t has_room = state.regs.gpr[kRax];
    State result = AnySavedState();
    result.window = oracle_.RunOnMachine(state).state.window;
    std::fill_n(result.window.begin() + kComponents + 16,
                sizeof(XsaveHeader) - 16, std::byte{0});
    result.window[kComponents] &= static_cast<std::byte>(random_.Next());
    if ((has_room & 2) == 0 || random_.Below(2) == 0) {
      std::memcpy(&result.window[kAreaAt + 24], &state.regs.mxcsr,
                  sizeof(state.regs.mxcsr));
    }
    oracle_.SetCode(kXrstor);
    return result;
  }

  static bool HasXsavec() {
    return x86::HostFeatures().Has(x86::Feature::kXsavec);
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

TEST_F(SaveStateTest, XsavecAgreesWithTheCpu) {
  if (!HasXsavec()) {
    GTEST_SKIP() << "this CPU has no XSAVEC";
  }
  oracle_.SetCode(kXsavec);
  for (int i = 0; i < kStates; ++i) {
    State state = AnySavedState();
    if (random_.Below(4) == 0) {
      state.regs.mxcsr = 0x1f80;
    }
    ASSERT_EQ(Compare(state), "") << "trial " << i;
  }
}

TEST_F(SaveStateTest, XrstorOfTheCompactedFormatAgreesWithTheCpu) {
  if (!HasXsavec()) {
    GTEST_SKIP() << "this CPU has no XSAVEC";
  }
  for (int i = 0; i < kStates; ++i) {
    ASSERT_EQ(Compare(AnyStateToRestoreCompacted()), "") << "trial " << i;
  }
}

// Of any header that says the compacted format: also such as XSAVEC does not
// write.
TEST_F(SaveStateTest, XrstorRefusesTheCompactedFormatsThatTheCpuRefuses) {
  if (!HasXsavec()) {
    GTEST_SKIP() << "this CPU has no XSAVEC";
  }
  int refused = 0;
  for (int i = 0; i < kStates; ++i) {
    State state = AnyStateToRestoreCompacted();
    const size_t at = kComponents + random_.Below(24);
    state.window[at] ^= static_cast<std::byte>(1u << random_.Below(8));
    // Other components of XCR0, which are not the machine's.
    state.window[kComponents] &= std::byte{0xe7};
    state.window[kComponents + 8] &= std::byte{0xe7};
    for (const size_t word : {kComponents, kComponents + 8}) {
      std::fill_n(state.window.begin() + static_cast<ptrdiff_t>(word) + 1, 3,
                  std::byte{0});
    }
    const int signal = oracle_.RunOnMachine(state).signal;
    EXPECT_EQ(signal, oracle_.RunOnCpu(state).signal) << "trial " << i;
    refused += signal != 0 ? 1 : 0;
  }
  EXPECT_GT(refused, kStates / 10);
  EXPECT_LT(refused, kStates);
}

TEST_F(SaveStateTest, XrstorAgreesWithTheCpu) {
  for (int i = 0; i < kStates; ++i) {
    ASSERT_EQ(Compare(AnyStateToRestore()), "") << "trial " << i;
  }
}

TEST_F(SaveStateTest, AThreadBeginsWithWhatXrstorWouldRestore) {
  for (int i = 0; i < kStates; ++i) {
    State state = AnyStateToRestore();
    state.regs.gpr[kRax] = AllComponents();
    const Outcome cpu = oracle_.RunOnCpu(state);
    Outcome begun = cpu;
    begun.state.regs.vec = state.regs.vec;
    begun.state.regs.opmask = state.regs.opmask;
    begun.state.regs.mxcsr = state.regs.mxcsr;
    begun.state.regs.x87 = state.regs.x87;
    RestoreXsave(std::span(state.window).subspan(kAreaAt),
                 UsualLayout(state.regs), begun.state.regs);
    ASSERT_EQ(Difference(cpu, begun, 0), "") << "trial " << i;
  }
}

TEST_F(SaveStateTest, AnAreaThatIsNotAlignedIsAFault) {
  for (const auto& code : {kXsave, kXsavec, kXrstor}) {
    if (code == kXsavec && !HasXsavec()) {
      continue;
    }
    State state = AnyStateToRestore();
    oracle_.SetCode(code);
    state.regs.gpr[kRsi] += 32;
    EXPECT_EQ(oracle_.RunOnMachine(state).signal, SIGSEGV);
    EXPECT_EQ(
        Difference(oracle_.RunOnCpu(state), oracle_.RunOnMachine(state), 0),
        "");
  }
}

// Each component that is asked for has to be there, and no other.
TEST_F(SaveStateTest, AnAreaOfWhichAComponentIsNotMappedIsAFault) {
  for (const auto& code : {kXsave, kXsavec, kXrstor}) {
    if (code == kXsavec && !HasXsavec()) {
      continue;
    }
    for (uint64_t asked = 0; asked <= AllComponents(); ++asked) {
      State state = AnyStateToRestore();
      state.window = {};
      state.regs.gpr[kRax] = asked & AllComponents();
      // The page ends behind opmask registers, or behind AVX.
      for (const uint64_t bytes : {1152u, 832u}) {
        const size_t at = kDataBytes - bytes;
        state.regs.gpr[kRsi] = kDataAt + at;
        const uint32_t mxcsr = 0x1f80;
        std::memcpy(&state.window[at + 24], &mxcsr, sizeof(mxcsr));
        state.window[at + sizeof(FxsaveArea)] =
            static_cast<std::byte>(AllComponents());
        oracle_.SetCode(code);
        EXPECT_EQ(oracle_.RunOnMachine(state).signal,
                  oracle_.RunOnCpu(state).signal)
            << asked << " " << bytes;
      }
    }
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
    state.regs.gpr[kRax] = AllComponents();
    state.window[kAreaAt + offset] = value;
    EXPECT_EQ(oracle_.RunOnMachine(state).signal, SIGSEGV) << offset;
    EXPECT_EQ(
        Difference(oracle_.RunOnCpu(state), oracle_.RunOnMachine(state), 0), "")
        << offset;
  }
}

}  // namespace
}  // namespace clew::machine
