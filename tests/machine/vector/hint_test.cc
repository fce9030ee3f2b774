// Goal: RDSSPD and RDSSPQ, which the disassembler does not know, do nothing, as
// on a CPU without a shadow stack.
// Method: every register, with and without REX.W. Oracle: the CPU (a program
// that was not started with a shadow stack has none).

#include <gtest/gtest.h>

#include "tests/machine/vector/any_state.h"

namespace clew::machine {
namespace {

TEST(HintTest, ReadingTheShadowStackPointerDoesNothing) {
  Oracle oracle;
  Random random(1);
  for (const int rex : {0x40, 0x41, 0x48, 0x49}) {
    for (int modrm = 0xc8; modrm <= 0xcf; ++modrm) {
      const std::vector<uint8_t> code = {0xf3, static_cast<uint8_t>(rex), 0x0f,
                                         0x1e, static_cast<uint8_t>(modrm)};
      oracle.SetCode(code);
      EXPECT_EQ(oracle.Compare(AnyState(random), 0), "") << modrm;
    }
  }
}

}  // namespace
}  // namespace clew::machine
