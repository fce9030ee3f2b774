// Goal: rt_sigreturn restores what the kernel restores: general registers,
// flags, and of the floating point area the legacy region and, where both magic
// words say that there is one, the AVX component; initial state otherwise.
// Method: frames made byte by byte, after struct ucontext, struct sigcontext_64
// and struct _xstate of the kernel's headers. That the registers come back in a
// recorded program is tests/programs/fpstate.c.

#include "follower/signal_frame.h"

#include <gtest/gtest.h>

#include <span>

#include "machine/xsave.h"

namespace clew::follower {
namespace {

constexpr uint64_t kFrame = 0x10000;
constexpr uint64_t kFpstate = kFrame + 1024;
constexpr uint64_t kHeader = kFpstate + 512;
constexpr uint64_t kAvxArea = kFpstate + 576;
constexpr uint32_t kXstateSize = 576 + 256;

class SignalFrameTest : public testing::Test {
 protected:
  // A frame whose upper halves are 100 to 131, all of them in use.
  SignalFrameTest() {
    memory_.Map(kFrame, 8192, kProtRead | kProtWrite);
    Put<uint64_t>(kFrame + 40 + 8 * 13, 77);        // rax
    Put<uint64_t>(kFrame + 40 + 8 * 16, 0x401000);  // rip
    Put<uint64_t>(kFrame + 40 + 8 * 23, kFpstate);
    Put<uint16_t>(kFpstate, 0x37f);
    Put<uint32_t>(kFpstate + 24, 0x1f80);  // mxcsr
    Put<uint64_t>(kFpstate + 160, 1000);   // xmm0
    Put<uint32_t>(kFpstate + 464, 0x46505853);
    Put<uint32_t>(kFpstate + 468, kXstateSize + 4);
    Put<uint64_t>(kFpstate + 472, 7);  // what is restored from here
    Put<uint32_t>(kFpstate + 480, kXstateSize);
    Put<uint32_t>(kFpstate + kXstateSize, 0x46505845);
    Put<uint64_t>(kHeader, 7);
    for (uint64_t i = 0; i < 32; ++i) {
      Put<uint64_t>(kAvxArea + 8 * i, 100 + i);
    }
  }

  template <class T>
  void Put(uint64_t addr, T value) {
    EXPECT_TRUE(memory_.Poke(addr, std::as_bytes(std::span(&value, 1))));
  }

  // Returns the registers after rt_sigreturn, which had ones in all upper
  // halves before it.
  machine::Registers Restored() const {
    machine::Registers registers;
    registers.gpr[kRsp] = kFrame;
    for (machine::Vec128& value : registers.vec[1]) {
      value = {{1, 1}};
    }
    EXPECT_TRUE(RestoreSignalFrame(memory_, registers));
    return registers;
  }

  machine::Memory memory_;
};

TEST_F(SignalFrameTest, RestoresTheYmmRegisters) {
  const machine::Registers registers = Restored();
  EXPECT_EQ(registers.gpr[kRax], 77u);
  EXPECT_EQ(registers.rip, 0x401000u);
  EXPECT_EQ(registers.vec[0][0].q[0], 1000u);
  for (unsigned number = 0; number < 16; ++number) {
    EXPECT_EQ(registers.quad(number, 2), 100 + 2 * number);
    EXPECT_EQ(registers.quad(number, 3), 101 + 2 * number);
  }
}

TEST_F(SignalFrameTest, WhatTheAreaDoesNotHaveIsInitialised) {
  const struct {
    const char* name;
    uint64_t addr;
  } without[] = {{"first magic word", kFpstate + 464},
                 {"size with the second magic word", kFpstate + 468},
                 {"component to restore", kFpstate + 472},
                 {"size", kFpstate + 480},
                 {"second magic word", kFpstate + kXstateSize},
                 {"component in use", kHeader}};
  for (const auto& [name, addr] : without) {
    const machine::Memory whole = memory_;
    Put<uint32_t>(addr, 0);
    const machine::Registers registers = Restored();
    EXPECT_EQ(registers.vec[1], machine::VecLane()) << name;
    EXPECT_EQ(registers.vec[0][0].q[0], 1000u) << name;
    memory_ = whole;
  }
}

TEST_F(SignalFrameTest, AFrameThatIsNotMappedChangesNothing) {
  machine::Registers registers;
  registers.gpr[kRsp] = kFrame - 4096;
  const machine::Registers before = registers;
  EXPECT_FALSE(RestoreSignalFrame(memory_, registers));
  EXPECT_EQ(registers, before);
}

}  // namespace
}  // namespace clew::follower
