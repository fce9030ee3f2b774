// Goal: what the scanner promises of any bytes, known or not.
// Method: examples from the manuals that the compiler evaluates (a read behind
// the end would not compile); then properties of random bytes of every length,
// which lie in front of an unreadable page.

#include "common/x86/layout.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <vector>

#include "common/digest.h"
#include "common/x86/branch.h"
#include "tests/common/x86/guarded_bytes.h"

namespace clew::x86 {
namespace {

template <class... Byte>
consteval Layout Scan(Byte... byte) {
  const std::array<uint8_t, sizeof...(Byte)> bytes = {
      static_cast<uint8_t>(byte)...};
  return ScanLayout(bytes);
}

template <class... Byte>
consteval bool IsWhole(Byte... byte) {
  return Scan(byte...).length == sizeof...(Byte);
}

template <class... Byte>
consteval bool IsUndefined(Byte... byte) {
  return Scan(byte...).status == LayoutStatus::kUndefined;
}

template <class... Byte>
consteval bool IsCut(Byte... byte) {
  return Scan(byte...).status == LayoutStatus::kTruncated;
}

// Immediates.
static_assert(IsWhole(0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8));  // movabs
static_assert(IsWhole(0x66, 0xb8, 1, 2));
static_assert(IsWhole(0xa1, 1, 2, 3, 4, 5, 6, 7, 8));  // mov eax, [moffs]
static_assert(IsWhole(0x67, 0xa1, 1, 2, 3, 4));
static_assert(IsWhole(0xc8, 1, 2, 3));           // enter
static_assert(IsWhole(0xf7, 0xc0, 1, 2, 3, 4));  // test eax, imm
static_assert(IsWhole(0xf7, 0xd0));              // not eax
static_assert(IsWhole(0xc7, 0xf8, 1, 2, 3, 4));  // xbegin
static_assert(IsWhole(0x66, 0xe9, 1, 2, 3, 4));  // jmp: Intel ignores 66
static_assert(IsWhole(0x66, 0x48, 0xe9, 1, 2, 3, 4));

// ModRM, SIB, displacement.
static_assert(IsWhole(0x8b, 0x04, 0x25, 1, 2, 3, 4));  // mov eax, [abs32]
static_assert(IsWhole(0x8b, 0x44, 0x24, 8));           // mov eax, [rsp + 8]
static_assert(IsWhole(0x8b, 0x05, 1, 2, 3, 4));        // mov eax, [rip + x]
static_assert(IsWhole(0x41, 0x8b, 0x45, 0));           // mov eax, [r13 + 0]
static_assert(IsWhole(0x0f, 0x20, 0x04));              // mov rsp, cr0

// VEX and EVEX: C5, C4 and 62 are not opcodes.
static_assert(IsWhole(0xc5, 0xf8, 0x77));                    // vzeroupper
static_assert(IsWhole(0xc5, 0xf5, 0xfe, 0x00));              // vpaddd
static_assert(IsWhole(0xc5, 0xf9, 0x70, 0xc1, 0x1b));        // vpshufd
static_assert(IsWhole(0xc4, 0xe2, 0x78, 0xf2, 0x00));        // andn
static_assert(IsWhole(0xc4, 0xe3, 0xfb, 0xf0, 0xc1, 0x07));  // rorx
static_assert(IsWhole(0x64, 0xc5, 0xf8, 0x10, 0x04, 0x25, 1, 2, 3, 4));
static_assert(IsWhole(0x62, 0xf1, 0x7c, 0x48, 0x10, 0x40, 0x01));  // vmovups
static_assert(IsWhole(0x62, 0xf3, 0x7d, 0x48, 0x25, 0xc0, 0xff));  // vpternlogd
static_assert(IsWhole(0x62, 0xf5, 0x7c, 0x48, 0x58, 0xc1));        // vaddph
static_assert(Scan(0xc5, 0xf8, 0x77).opcode.encoding == Encoding::kVex2);
static_assert(Scan(0xc4, 0xe2, 0x78, 0xf2, 0).opcode.map == OpcodeMap::k0F38);
static_assert(!Scan(0xc4, 0xe2, 0x78, 0xf2, 0).opcode.prefixes.w());
static_assert(Scan(0xc4, 0xe2, 0xf8, 0xf2, 0).opcode.prefixes.w());
static_assert(Scan(0xc4, 0xc2, 0x78, 0xf2, 0).opcode.prefixes.b());
static_assert(!Scan(0xc5, 0x00, 0x58, 0).opcode.prefixes.b());
static_assert(Scan(0xc5, 0x7c, 0x58, 0).opcode.prefixes.rex == 0x44);
static_assert(Scan(0xc5, 0xf8, 0x77).opcode.vector_bytes == 16);
static_assert(Scan(0xc5, 0xfc, 0x77).opcode.vector_bytes == 32);
static_assert(Scan(0xc4, 0xe2, 0x79, 0x58, 0xc1).opcode.vector_bytes == 16);
static_assert(Scan(0xc4, 0xe2, 0x7d, 0x58, 0xc1).opcode.vector_bytes == 32);
static_assert(Scan(0x0f, 0x77).opcode.vector_bytes == 0);

// #UD whatever follows.
static_assert(IsUndefined(0x06) && IsUndefined(0x9a) && IsUndefined(0xea));
static_assert(IsUndefined(0x0f, 0x0b) && IsUndefined(0x0f, 0xb9));
static_assert(IsUndefined(0xf0, 0xc5, 0xf8, 0x77));
static_assert(IsUndefined(0x66, 0xc5, 0xf8, 0x77));
static_assert(IsUndefined(0x48, 0xc4, 0xe2, 0x78, 0xf2, 0x00));
static_assert(IsUndefined(0xf3, 0x62, 0xf1, 0x7c, 0x48, 0x10, 0xc1));
static_assert(IsUndefined(0xc4, 0xe0, 0x78, 0xf2, 0x00));        // map 0
static_assert(IsUndefined(0xc4, 0xe4, 0x78, 0xf2, 0x00));        // map 4
static_assert(IsUndefined(0x62, 0xf9, 0x7c, 0x48, 0x10, 0xc1));  // bit 3
static_assert(IsUndefined(0x62, 0xf1, 0x78, 0x48, 0x10, 0xc1));  // bit 2 is 0

// Cut off.
static_assert(IsCut() && IsCut(0x66) && IsCut(0x48) && IsCut(0x0f));
static_assert(IsCut(0xc5) && IsCut(0xc4, 0xe2) && IsCut(0x62, 0xf1, 0x7c));
static_assert(IsCut(0xc5, 0xf8) && IsCut(0x8b) && IsCut(0x8b, 0x04));
static_assert(IsCut(0x0f, 0x38) && IsCut(0xe8, 1, 2, 3));

// Prefixes.
static_assert(IsWhole(0x48, 0x66, 0xb8, 1, 2));  // REX does nothing there
static_assert(Scan(0x48, 0x66, 0xb8, 1, 2).opcode.prefixes.ignored_rex);
static_assert(Scan(0x48, 0x66, 0xb8, 1, 2).opcode.prefixes.rex == 0);
static_assert(Scan(0xf2, 0xf3, 0x90).opcode.prefixes.rep);
static_assert(!Scan(0xf2, 0xf3, 0x90).opcode.prefixes.repne);
static_assert(Scan(0x64, 0x65, 0x90).opcode.prefixes.segment == Segment::kGs);
static_assert(Scan(0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66,
                   0x66, 0x66, 0x66, 0x66, 0x66, 0x90)
                  .status == LayoutStatus::kTooLong);
static_assert(IsWhole(0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66,
                      0x66, 0x66, 0x66, 0x66, 0x66, 0x90));

uint64_t Seed() {
  const char* seed = std::getenv("CLEW_SEED");
  return seed != nullptr ? std::strtoull(seed, nullptr, 0) : 1;
}

class LayoutTest : public testing::Test {
 protected:
  LayoutTest() { fmt::print("seed {}\n", Seed()); }

  // Up to 20 bytes, some of them prefixes and escapes, now and then after many
  // prefixes.
  std::vector<uint8_t> RandomBytes() {
    constexpr uint8_t kOften[] = {0x66, 0x67, 0xf0, 0xf2, 0xf3, 0x64, 0x48,
                                  0x45, 0x0f, 0x38, 0x3a, 0xc4, 0xc5, 0x62};
    std::vector<uint8_t> bytes(random_.Below(21));
    for (uint8_t& byte : bytes) {
      byte = random_.Below(3) == 0 ? kOften[random_.Below(sizeof kOften)]
                                   : static_cast<uint8_t>(random_.Next());
    }
    if (random_.Below(8) == 0) {
      std::fill_n(bytes.begin(), random_.Below(bytes.size() + 1), 0x66);
    }
    return bytes;
  }

  Random random_{Seed()};
  GuardedBytes guarded_;
};

void ExpectPartsAddUp(const Layout& layout) {
  EXPECT_EQ(layout.modrm.has_value(), layout.takes_modrm);
  EXPECT_EQ(layout.length, layout.opcode.bytes + (layout.modrm ? 1 : 0) +
                               (layout.sib ? 1 : 0) +
                               layout.displacement_bytes +
                               layout.immediate_bytes);
}

TEST_F(LayoutTest, ARandomInstructionIsTheSumOfItsParts) {
  std::map<LayoutStatus, int> seen;
  for (int i = 0; i < 1'000'000; ++i) {
    const std::vector<uint8_t> bytes = RandomBytes();
    const Layout layout = ScanLayout(guarded_.Copy(bytes));
    ++seen[layout.status];
    const bool whole = layout.status == LayoutStatus::kWhole;
    ASSERT_EQ(layout.length != 0, whole);
    ASSERT_LE(layout.length, std::min(bytes.size(), kInsnBytesMax));
    ASSERT_TRUE(layout.status != LayoutStatus::kTruncated ||
                bytes.size() < kInsnBytesMax);
    ASSERT_TRUE(layout.status != LayoutStatus::kTooLong ||
                bytes.size() >= kInsnBytesMax);
    if (whole) {
      ExpectPartsAddUp(layout);
      ASSERT_FALSE(HasFailure()) << testing::PrintToString(bytes);
    }
  }
  EXPECT_EQ(seen.size(), 4u);
}

TEST_F(LayoutTest, APartOfAnInstructionIsNotReadBeyond) {
  int cut = 0;
  for (int i = 0; i < 200'000; ++i) {
    const std::vector<uint8_t> bytes = RandomBytes();
    const Layout layout = ScanLayout(bytes);
    for (size_t n = 0; n < layout.length; ++n) {
      const auto part = guarded_.Copy(std::span(bytes).first(n));
      ASSERT_EQ(ScanLayout(part).status, LayoutStatus::kTruncated)
          << n << " of " << testing::PrintToString(bytes);
      ClassifyBranch(part);
      ++cut;
    }
  }
  EXPECT_GT(cut, 100'000);
}

TEST_F(LayoutTest, WhatFollowsAnInstructionDoesNotMatter) {
  for (int i = 0; i < 200'000; ++i) {
    const std::vector<uint8_t> bytes = RandomBytes();
    const Layout layout = ScanLayout(bytes);
    if (layout.status != LayoutStatus::kWhole) {
      continue;
    }
    const auto alone = guarded_.Copy(std::span(bytes).first(layout.length));
    ASSERT_EQ(ScanLayout(alone).length, layout.length)
        << testing::PrintToString(bytes);
    ASSERT_EQ(ClassifyBranch(alone).branch_class,
              ClassOf(layout.opcode, layout.modrm))
        << testing::PrintToString(bytes);
  }
}

}  // namespace
}  // namespace clew::x86
