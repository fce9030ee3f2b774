// Goal: whole compiled routines have on the machine the result they have
// natively, and end in the same registers and memory.
// Method: differential. Functions of this program (run_guest.c, compiled for
// x86-64-v2 at -O2 and again at -O0) are called directly and on a copy of the
// program's image, with random arguments.

#include <gtest/gtest.h>

#include "common/digest.h"
#include "tests/machine/guest_call.h"

extern "C" {
uint64_t GuestMixO0(uint64_t seed, uint64_t rounds);
uint64_t GuestMixO2(uint64_t seed, uint64_t rounds);
uint64_t GuestSortO0(uint64_t seed, uint64_t rounds);
uint64_t GuestSortO2(uint64_t seed, uint64_t rounds);
uint64_t GuestTextO0(uint64_t seed, uint64_t rounds);
uint64_t GuestTextO2(uint64_t seed, uint64_t rounds);
uint64_t GuestFloatO0(uint64_t seed, uint64_t rounds);
uint64_t GuestFloatO2(uint64_t seed, uint64_t rounds);
}

namespace clew::machine {
namespace {

using Function = uint64_t (*)(uint64_t, uint64_t);

class RunTest : public testing::TestWithParam<Function> {};

TEST_P(RunTest, ResultIsAsNative) {
  GuestCall guest;
  CodeCache code;
  Random random(11);
  uint64_t insns = 0;
  for (int i = 0; i < 20; ++i) {
    const uint64_t seed = random.Next();
    const uint64_t rounds = 1 + random.Below(60);
    const Registers start =
        guest.Prepare(reinterpret_cast<uint64_t>(GetParam()), {seed, rounds});
    const GuestResult result =
        RunToReturn(guest.memory(), code, start, 50'000'000);
    ASSERT_TRUE(result.returned) << result.stop.detail;
    EXPECT_EQ(result.regs.gpr[kRax], GetParam()(seed, rounds));
    // The callee-saved registers of the ABI.
    for (const Gpr saved : {kRbx, kRbp, kR12, kR13, kR14, kR15}) {
      EXPECT_EQ(result.regs.gpr[saved], start.gpr[saved]);
    }
    EXPECT_EQ(result.regs.gpr[kRsp], start.gpr[kRsp] + 8);
    insns += result.insns;
  }
  RecordProperty("insns", std::to_string(insns));
  EXPECT_GT(insns, 1000u);
}

INSTANTIATE_TEST_SUITE_P(O0, RunTest,
                         testing::Values(&GuestMixO0, &GuestSortO0,
                                         &GuestTextO0, &GuestFloatO0));
INSTANTIATE_TEST_SUITE_P(O2, RunTest,
                         testing::Values(&GuestMixO2, &GuestSortO2,
                                         &GuestTextO2, &GuestFloatO2));

}  // namespace
}  // namespace clew::machine
