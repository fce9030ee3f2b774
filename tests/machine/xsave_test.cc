// Goal: the layout of an XSAVE area is that of the CPU, in both formats.
// Method: the layout that is assumed of an unknown CPU against CPUID; offsets
// in the compacted format against what XSAVEC stores, of the components whose
// value can be read otherwise (AVX, PKRU); then examples.

#include "machine/xsave.h"

#include <cpuid.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <optional>

namespace clew::machine {
namespace {

constexpr unsigned kComponentPkru = 9;
constexpr uint64_t kCompactedBit = uint64_t{1} << 63;

constexpr uint64_t Bit(unsigned component) { return uint64_t{1} << component; }

// Of a sub-leaf of leaf 0DH; zeros where there is none.
struct XsaveLeaf {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

XsaveLeaf AskCpu(unsigned sub_leaf) {
  XsaveLeaf leaf;
  if (__get_cpuid_max(0, nullptr) >= 0xd) {
    __cpuid_count(0xd, sub_leaf, leaf.eax, leaf.ebx, leaf.ecx, leaf.edx);
  }
  return leaf;
}

XsaveLayout LayoutOfThisCpu() {
  XsaveLayout layout;
  for (unsigned i = 2; i < layout.components.size(); ++i) {
    const XsaveLeaf leaf = AskCpu(i);
    layout.components[i] = {leaf.eax, leaf.ebx, (leaf.ecx & 2) != 0};
  }
  return layout;
}

// XCR0: what the operating system lets user mode have.
uint64_t EnabledComponents() {
  uint32_t low;
  uint32_t high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t{high} << 32 | low;
}

bool HasXsavec() { return (AskCpu(1).eax & 2) != 0; }

struct alignas(64) Area {
  std::array<std::byte, 16384> bytes = {};

  XsaveHeader header() const {
    XsaveHeader header;
    std::memcpy(&header, bytes.data() + sizeof(FxsaveArea), sizeof(header));
    return header;
  }
  template <class T>
  T At(uint64_t offset) const {
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof(value));
    return value;
  }
};

// XSAVEC with all bits of YMM7 set.
void SaveCompacted(uint64_t components, Area& area) {
  __asm__ volatile(
      "vpcmpeqd %%xmm7, %%xmm7, %%xmm7\n\t"
      "vinsertf128 $1, %%xmm7, %%ymm7, %%ymm7\n\t"
      "xsavec (%[area])\n\t"
      "vzeroupper"
      :
      : [area] "r"(area.bytes.data()), "a"(static_cast<uint32_t>(components)),
        "d"(static_cast<uint32_t>(components >> 32))
      : "xmm7", "memory");
}

uint32_t Pkru() {
  uint32_t value;
  __asm__ volatile("rdpkru" : "=a"(value) : "c"(0) : "rdx");
  return value;
}

TEST(XsaveTest, TheUsualPlaceOfAvxIsThatOfThisCpu) {
  const XsaveComponent found = LayoutOfThisCpu().components[kComponentAvx];
  if (found.size_bytes == 0) {
    GTEST_SKIP() << "this CPU has no AVX";
  }
  const XsaveComponent usual = XsaveLayout().components[kComponentAvx];
  EXPECT_EQ(usual.size_bytes, found.size_bytes);
  EXPECT_EQ(usual.offset, found.offset);
  EXPECT_EQ(usual.aligned, found.aligned);
}

TEST(XsaveTest, TheCompactedFormatIsWhatXsavecStores) {
  if (!HasXsavec() || __builtin_cpu_supports("avx") == 0) {
    GTEST_SKIP() << "this CPU has no XSAVEC or no AVX";
  }
  const XsaveLayout layout = LayoutOfThisCpu();
  const uint64_t with_pkru = Bit(kComponentAvx) | Bit(kComponentPkru);
  for (const uint64_t wanted : {Bit(kComponentAvx), with_pkru}) {
    const uint64_t components = wanted & EnabledComponents();
    Area area;
    SaveCompacted(components, area);
    const XsaveHeader header = area.header();
    ASSERT_EQ(header.xcomp_bv, kCompactedBit | components);
    const auto avx = layout.OffsetOf(kComponentAvx, header.xcomp_bv);
    ASSERT_TRUE(avx.has_value());
    EXPECT_EQ(area.At<VecLane>(*avx)[7], (Vec128{{~0ull, ~0ull}}));
    if ((header.xstate_bv & Bit(kComponentPkru)) != 0) {
      const auto pkru = layout.OffsetOf(kComponentPkru, header.xcomp_bv);
      ASSERT_TRUE(pkru.has_value());
      EXPECT_EQ(area.At<uint32_t>(*pkru), Pkru());
    }
  }
}

// Of a CPU with AVX and three components more, two of them aligned.
XsaveLayout ExampleLayout() {
  XsaveLayout layout;
  layout.components[5] = {64, 1088, false};
  layout.components[6] = {8, 1152, true};
  layout.components[7] = {16, 1664, true};
  return layout;
}

TEST(XsaveTest, TheStandardFormatHasEachAtItsOwnOffset) {
  const XsaveLayout layout = ExampleLayout();
  EXPECT_EQ(layout.OffsetOf(2, 0), 576u);
  EXPECT_EQ(layout.OffsetOf(5, 0), 1088u);
  EXPECT_EQ(layout.OffsetOf(7, 0), 1664u);
  EXPECT_EQ(layout.OffsetOf(3, 0), std::nullopt) << "the CPU does not have it";
}

TEST(XsaveTest, TheCompactedFormatHasNoRoomForWhatIsNotThere) {
  const XsaveLayout layout = ExampleLayout();
  const auto offset = [&](unsigned component, uint64_t others) {
    return layout.OffsetOf(component, kCompactedBit | others);
  };
  EXPECT_EQ(offset(2, Bit(2)), 576u);
  EXPECT_EQ(offset(5, Bit(5)), 576u);
  EXPECT_EQ(offset(5, Bit(2) | Bit(5)), 832u);
  EXPECT_EQ(offset(7, Bit(2) | Bit(6) | Bit(7)), 896u) << "832 + 8, aligned";
  EXPECT_EQ(offset(2, Bit(5)), std::nullopt) << "the area does not have it";
  EXPECT_EQ(offset(5, Bit(3) | Bit(5)), std::nullopt) << "3 has no size";
}

}  // namespace
}  // namespace clew::machine
