// Goal: rt_sigreturn restores what the kernel restores: general registers,
// flags, and of the floating point area the legacy region and, where both magic
// words say that there is one, the components of AVX and AVX-512; what is not
// there, or is not marked, becomes initial.
// Method: frames made byte by byte, after struct ucontext, struct sigcontext_64
// and struct _xstate of the kernel's headers; each bit that can be missing. (A
// handler that clears those bits in its frame was compared on Linux 6.18.) That
// the registers come back in a recorded program is tests/programs/fpstate.c.

#include "follower/kernel/signal_frame.h"

#include <gtest/gtest.h>

#include <array>
#include <span>

namespace clew::follower {
namespace {

using machine::ComponentBit;

constexpr uint64_t kFrame = 0x10000;
constexpr uint64_t kFpstate = kFrame + 1024;
constexpr uint64_t kHeader = kFpstate + 512;
constexpr uint64_t kXfeatures = kFpstate + 472;
constexpr uint32_t kXstateSize = 2688;
constexpr uint64_t kAll = 0xe7;
constexpr uint32_t kMxcsr = 0x9f80;
constexpr uint16_t kControl = 0x27f;

// A component, and where its first word is in a frame and in the registers. (Of
// x87 the control word stands for all of it.)
struct Part {
  const char* name;
  unsigned component;
  uint64_t at;
  uint64_t value;
  uint64_t initial;
  uint64_t (*get)(const machine::Registers& registers);
};
constexpr Part kParts[] = {
    {"x87", 0, kFpstate, kControl, 0x37f,
     [](const auto& registers) { return uint64_t{registers.x87.control}; }},
    {"sse", 1, kFpstate + 160, 1000, 0,
     [](const auto& registers) { return registers.quad(0, 0); }},
    {"avx", 2, kFpstate + 576, 2000, 0,
     [](const auto& registers) { return registers.quad(0, 2); }},
    {"opmask", 5, kFpstate + 1088, 5000, 0,
     [](const auto& registers) { return registers.opmask[0]; }},
    {"zmm", 6, kFpstate + 1152, 6000, 0,
     [](const auto& registers) { return registers.quad(0, 4); }},
    {"high zmm", 7, kFpstate + 1664, 7000, 0,
     [](const auto& registers) { return registers.quad(16, 0); }},
};

class SignalFrameTest : public testing::Test {
 protected:
  // A frame that has all components.
  SignalFrameTest() {
    memory_.Map(kFrame, 8192, kProtRead | kProtWrite);
    Put<uint64_t>(kFrame + 40 + 8 * 13, 77);        // rax
    Put<uint64_t>(kFrame + 40 + 8 * 16, 0x401000);  // rip
    Put<uint64_t>(kFrame + 40 + 8 * 23, kFpstate);
    Put<uint32_t>(kFpstate + 24, kMxcsr);
    Put<uint32_t>(kFpstate + 464, 0x46505853);
    Put<uint32_t>(kFpstate + 468, kXstateSize + 4);
    Put<uint64_t>(kXfeatures, kAll);  // what is restored from here
    Put<uint32_t>(kFpstate + 480, kXstateSize);
    Put<uint32_t>(kFpstate + kXstateSize, 0x46505845);
    Put<uint64_t>(kHeader, kAll);
    for (const Part& part : kParts) {
      Put<uint16_t>(part.at, static_cast<uint16_t>(part.value));
    }
  }

  template <class T>
  void Put(uint64_t addr, T value) {
    EXPECT_TRUE(memory_.Poke(addr, std::as_bytes(std::span(&value, 1))));
  }

  // Returns the registers after rt_sigreturn, which had ones in all vector and
  // opmask registers before it.
  machine::Registers Restored(const machine::XsaveLayout& layout = {}) const {
    machine::Registers registers;
    registers.gpr[kRsp] = kFrame;
    for (machine::VecLane& lane : registers.vec) {
      lane.fill({{1, 1}});
    }
    registers.opmask.fill(1);
    EXPECT_TRUE(RestoreSignalFrame(memory_, layout, registers));
    return registers;
  }

  // Those whose bit in `restored` is set have the frame's value, others are
  // initial.
  static void ExpectRestored(const machine::Registers& registers,
                             uint64_t restored) {
    for (const Part& part : kParts) {
      const bool is = (restored & ComponentBit(part.component)) != 0;
      EXPECT_EQ(part.get(registers), is ? part.value : part.initial)
          << part.name;
    }
    const auto is_in_use = [restored](unsigned component) {
      return (restored & ComponentBit(component)) != 0;
    };
    EXPECT_EQ(registers.x87.in_use, is_in_use(0));
    EXPECT_EQ(registers.avx_in_use, is_in_use(2));
    EXPECT_EQ(registers.opmask_in_use, is_in_use(5));
    EXPECT_EQ(registers.zmm_in_use, is_in_use(6));
    EXPECT_EQ(registers.high_zmm_in_use, is_in_use(7));
    EXPECT_EQ(registers.quad(31, 7), 0u);
  }

  machine::Memory memory_;
};

TEST_F(SignalFrameTest, RestoresAllComponents) {
  const machine::Registers registers = Restored();
  EXPECT_EQ(registers.gpr[kRax], 77u);
  EXPECT_EQ(registers.rip, 0x401000u);
  EXPECT_EQ(registers.mxcsr, kMxcsr);
  ExpectRestored(registers, kAll);
}

TEST_F(SignalFrameTest, RestoresEveryRegister) {
  for (uint64_t i = 0; i < 2 * 16; ++i) {
    Put<uint64_t>(kFpstate + 576 + 8 * i, 2000 + i);
    Put<uint64_t>(kFpstate + 1152 + 8 * i, 6000 + i);
    Put<uint64_t>(kFpstate + 1152 + 8 * (32 + i), 6032 + i);
  }
  for (uint64_t i = 0; i < 8 * 16; ++i) {
    Put<uint64_t>(kFpstate + 1664 + 8 * i, 7000 + i);
  }
  for (uint64_t i = 0; i < 8; ++i) {
    Put<uint64_t>(kFpstate + 1088 + 8 * i, 5000 + i);
  }
  const machine::Registers registers = Restored();
  for (unsigned number = 0; number < 16; ++number) {
    for (unsigned i = 0; i < 8; ++i) {
      if (i >= 4) {
        EXPECT_EQ(registers.quad(number, i), 6000 + 4 * number + i - 4);
      } else if (i >= 2) {
        EXPECT_EQ(registers.quad(number, i), 2000 + 2 * number + i - 2);
      }
      EXPECT_EQ(registers.quad(16 + number, i), 7000 + 8 * number + i);
    }
  }
  for (unsigned i = 0; i < 8; ++i) {
    EXPECT_EQ(registers.opmask[i], 5000u + i);
  }
}

TEST_F(SignalFrameTest, AComponentThatIsInItsInitialStateIsInitialised) {
  for (const Part& part : kParts) {
    SCOPED_TRACE(part.name);
    Put<uint64_t>(kHeader, kAll & ~ComponentBit(part.component));
    const machine::Registers registers = Restored();
    ExpectRestored(registers, kAll & ~ComponentBit(part.component));
    EXPECT_EQ(registers.mxcsr, kMxcsr);
  }
}

// MXCSR is restored with SSE.
TEST_F(SignalFrameTest, AComponentThatIsNotRestoredIsInitialised) {
  for (const Part& part : kParts) {
    SCOPED_TRACE(part.name);
    Put<uint64_t>(kXfeatures, kAll & ~ComponentBit(part.component));
    const machine::Registers registers = Restored();
    ExpectRestored(registers, kAll & ~ComponentBit(part.component));
    EXPECT_EQ(registers.mxcsr, part.component == machine::kComponentSse
                                   ? machine::Registers().mxcsr
                                   : kMxcsr);
  }
}

TEST_F(SignalFrameTest, WithoutAnAreaTheLegacyRegionIsRestored) {
  const struct {
    const char* name;
    uint64_t addr;
  } without[] = {{"first magic word", kFpstate + 464},
                 {"size with the second magic word", kFpstate + 468},
                 {"size", kFpstate + 480},
                 {"second magic word", kFpstate + kXstateSize}};
  for (const auto& [name, addr] : without) {
    SCOPED_TRACE(name);
    const machine::Memory whole = memory_;
    Put<uint32_t>(addr, 0);
    const machine::Registers registers = Restored();
    ExpectRestored(registers, 3);
    EXPECT_EQ(registers.mxcsr, kMxcsr);
    memory_ = whole;
  }
}

TEST_F(SignalFrameTest, ComponentsLieWhereTheCpuHasThem) {
  machine::XsaveLayout layout;
  layout.components[5].offset = 832;
  layout.components[7].offset = 1408;
  Put<uint64_t>(kFpstate + 832, 51);
  Put<uint64_t>(kFpstate + 1408, 71);
  const machine::Registers registers = Restored(layout);
  EXPECT_EQ(registers.opmask[0], 51u);
  EXPECT_EQ(registers.quad(16, 0), 71u);
}

TEST_F(SignalFrameTest, AFrameThatIsNotMappedChangesNothing) {
  machine::Registers registers;
  registers.gpr[kRsp] = kFrame - 4096;
  const machine::Registers before = registers;
  EXPECT_FALSE(RestoreSignalFrame(memory_, {}, registers));
  EXPECT_EQ(registers, before);
}

}  // namespace
}  // namespace clew::follower
