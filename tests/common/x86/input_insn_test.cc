// Goal: instructions whose result comes from outside are told from all others.
#include "common/x86/input_insn.h"

#include <gtest/gtest.h>

#include <vector>

namespace clew::x86 {
namespace {

TEST(InputInsnTest, FindsInstructionsWithResultsFromOutside) {
  using V = std::vector<uint8_t>;
  EXPECT_EQ(ClassifyInput(V{0x0f, 0xa2}), InputInsn::kCpuid);
  EXPECT_EQ(ClassifyInput(V{0x0f, 0x31}), InputInsn::kRdtsc);
  EXPECT_EQ(ClassifyInput(V{0x48, 0x0f, 0xc7, 0xf0}), InputInsn::kOther);
  EXPECT_EQ(ClassifyInput(V{0x0f, 0x01, 0xf9}), InputInsn::kRdtscp);
  EXPECT_EQ(ClassifyInput(V{0x0f, 0x01, 0xd0}), InputInsn::kXgetbv);
  EXPECT_EQ(ClassifyInput(V{0x0f, 0xaf, 0xc1}), InputInsn::kNone);
  EXPECT_EQ(ClassifyInput(V{0x0f, 0x01, 0xf8}), InputInsn::kNone) << "swapgs";
  EXPECT_EQ(ClassifyInput(V{0x0f, 0xc7, 0x0f}), InputInsn::kNone)
      << "cmpxchg8b";
  EXPECT_EQ(ClassifyInput(V{0xc5, 0xf8, 0xa2}), InputInsn::kNone) << "VEX";
  EXPECT_EQ(ClassifyInput(V{0x0f}), InputInsn::kNone) << "cut off";
}

}  // namespace
}  // namespace clew::x86
