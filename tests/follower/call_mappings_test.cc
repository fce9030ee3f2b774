// Goal: memory after mremap is what the kernel's is: contents go along, what
// was left is unmapped or, with MREMAP_DONTUNMAP, zeros under the same
// protection. Method: each form by hand, against the manual page.
#include "follower/call_mappings.h"

#include <asm/unistd_64.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <optional>

#include "common/x86/page.h"

namespace clew::follower {
namespace {

constexpr uint64_t kFrom = 0x10000;
constexpr uint64_t kTo = 0x40000;
constexpr uint32_t kProt = kProtRead | kProtWrite;

class RemapTest : public testing::Test {
 protected:
  // Two pages at kFrom that have their numbers, 1 and 2.
  void SetUp() override {
    memory_.Map(kFrom, 2 * kPageBytes, kProt);
    ASSERT_TRUE(memory_.Store(kFrom, uint8_t{1}));
    ASSERT_TRUE(memory_.Store(kFrom + kPageBytes, uint8_t{2}));
  }
  void Remap(uint64_t old_pages, uint64_t new_pages, uint64_t flags,
             uint64_t to) {
    SyscallInput call;
    call.number = __NR_mremap;
    call.args = {kFrom, old_pages * kPageBytes, new_pages * kPageBytes, flags};
    call.result = static_cast<int64_t>(to);
    uint64_t brk = 0;
    ApplyMappings(call, memory_, brk);
  }
  // nullopt: not mapped.
  std::optional<int> At(uint64_t addr) const {
    uint8_t byte = 0;
    return memory_.Load(addr, byte) ? std::optional<int>(byte) : std::nullopt;
  }
  machine::Memory memory_;
};

TEST_F(RemapTest, AMoveTakesContentsAlongAndLeavesNothing) {
  Remap(2, 2, MREMAP_MAYMOVE, kTo);
  EXPECT_EQ(At(kTo), 1);
  EXPECT_EQ(At(kTo + kPageBytes), 2);
  EXPECT_EQ(At(kFrom), std::nullopt);
}

TEST_F(RemapTest, WhatIsNotToBeUnmappedIsZeroAndProtectedAsBefore) {
  memory_.Protect(kFrom, 2 * kPageBytes, kProtRead);
  Remap(2, 2, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, kTo);
  EXPECT_EQ(At(kTo), 1);
  EXPECT_EQ(At(kFrom), 0);
  EXPECT_EQ(At(kFrom + kPageBytes), 0);
  EXPECT_EQ(memory_.ProtectionAt(kFrom), kProtRead);
}

TEST_F(RemapTest, WhatIsGrownIsZeroBehindTheContents) {
  Remap(2, 3, MREMAP_MAYMOVE, kTo);
  EXPECT_EQ(At(kTo + kPageBytes), 2);
  EXPECT_EQ(At(kTo + 2 * kPageBytes), 0);
  EXPECT_EQ(memory_.ProtectionAt(kTo + 2 * kPageBytes), kProt);
  EXPECT_EQ(At(kFrom), std::nullopt);
}

TEST_F(RemapTest, WhatIsShrunkLosesItsEndHereAndThere) {
  Remap(2, 1, 0, kFrom);
  EXPECT_EQ(At(kFrom), 1);
  EXPECT_EQ(At(kFrom + kPageBytes), std::nullopt);
}

TEST_F(RemapTest, WhatIsShrunkAndMovedLeavesNothing) {
  Remap(2, 1, MREMAP_MAYMOVE | MREMAP_FIXED, kTo);
  EXPECT_EQ(At(kTo), 1);
  EXPECT_EQ(At(kTo + kPageBytes), std::nullopt);
  EXPECT_EQ(At(kFrom), std::nullopt);
  EXPECT_EQ(At(kFrom + kPageBytes), std::nullopt);
}

}  // namespace
}  // namespace clew::follower
