// Goal: the layout of an XSAVE area is that of the CPU, in both formats; each
// component has its registers and no others.
// Method: the layout that is assumed of a maker's CPUs against CPUID; offsets
// in the compacted format against what XSAVEC stores, of the components whose
// value can be read otherwise (AVX, PKRU); every quadword of every component;
// then examples.

#include "machine/xsave.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <optional>
#include <vector>

#include "common/x86/xcr0.h"

namespace clew::machine {
namespace {

constexpr unsigned kComponentPkru = 9;
constexpr uint64_t kCompactedBit = uint64_t{1} << 63;
constexpr uint32_t kXsaveLeaf = 0xd;

constexpr uint64_t Bit(unsigned component) { return ComponentBit(component); }

Registers RegistersOfThisCpu() {
  Registers registers;
  registers.mxcsr_mask = x86::HostMxcsrMask();
  return registers;
}

XsaveLayout LayoutOfThisCpu() {
  const ToldCpu told = {.cpuid = x86::CpuidTable::Ask(x86::AskCpuid)};
  return LayoutOf(RegistersOfThisCpu(), &told);
}

bool HasXsavec() { return (x86::AskCpuid(kXsaveLeaf, 1).eax & 2) != 0; }

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

TEST(XsaveTest, TheUsualPlacesAreThoseOfThisCpu) {
  const XsaveLayout& usual = UsualLayout(RegistersOfThisCpu());
  for (const unsigned component : kExtendedComponents) {
    const x86::CpuidResult told = x86::AskCpuid(kXsaveLeaf, component);
    if (told.eax == 0) {
      continue;  // this CPU does not have it
    }
    EXPECT_EQ(usual.components[component].size_bytes, told.eax) << component;
    EXPECT_EQ(usual.components[component].offset, told.ebx) << component;
    EXPECT_EQ(usual.components[component].aligned, (told.ecx & 2) != 0)
        << component;
  }
}

// Source: as UsualLayout.
TEST(XsaveTest, MakersKeepAvx512AtPlacesOfTheirOwn) {
  const auto offsets = [](uint32_t mxcsr_mask) {
    Registers registers;
    registers.mxcsr_mask = mxcsr_mask;
    std::vector<uint32_t> found;
    found.reserve(kExtendedComponents.size());
    for (const unsigned component : kExtendedComponents) {
      found.push_back(UsualLayout(registers).components[component].offset);
    }
    return found;
  };
  const std::vector<uint32_t> of_intel = {576, 1088, 1152, 1664};
  EXPECT_EQ(offsets(0xffff), of_intel);
  EXPECT_EQ(offsets(0x2ffff), (std::vector<uint32_t>{576, 832, 896, 1408}));
  EXPECT_EQ(offsets(0), of_intel) << "without a word of the CPU";
}

TEST(XsaveTest, WhatCpuidToldCountsMore) {
  const ToldCpu told = {
      .cpuid = x86::CpuidTable({{.leaf = kXsaveLeaf,
                                 .sub_leaf = kComponentZmm,
                                 .told = {.eax = 512, .ebx = 4096, .ecx = 2}},
                                {.leaf = kXsaveLeaf,
                                 .sub_leaf = kComponentPkru,
                                 .told = {.eax = 8, .ebx = 2688}}})};
  const XsaveLayout layout = LayoutOf({}, &told);
  EXPECT_EQ(layout.OffsetOf(kComponentZmm, 0), 4096u);
  EXPECT_TRUE(layout.components[kComponentZmm].aligned);
  EXPECT_EQ(layout.OffsetOf(kComponentPkru, 0), 2688u);
  EXPECT_EQ(layout.OffsetOf(kComponentOpmask, 0), 1088u) << "nothing was told";
  EXPECT_EQ(LayoutOf({}, nullptr).OffsetOf(kComponentZmm, 0), 1152u);
}

TEST(XsaveTest, TheCompactedFormatIsWhatXsavecStores) {
  if (!HasXsavec() || __builtin_cpu_supports("avx") == 0) {
    GTEST_SKIP() << "this CPU has no XSAVEC or no AVX";
  }
  const XsaveLayout layout = LayoutOfThisCpu();
  const uint64_t with_pkru = Bit(kComponentAvx) | Bit(kComponentPkru);
  for (const uint64_t wanted : {Bit(kComponentAvx), with_pkru}) {
    const uint64_t components = wanted & x86::HostXcr0();
    Area area;
    SaveCompacted(components, area);
    const XsaveHeader header = area.header();
    ASSERT_EQ(header.xcomp_bv, kCompactedBit | components);
    const auto avx = layout.OffsetOf(kComponentAvx, header.xcomp_bv);
    ASSERT_TRUE(avx.has_value());
    EXPECT_EQ(area.At<LowVecLane>(*avx)[7], (Vec128{{~0ull, ~0ull}}));
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

// No two quadwords of vector registers, and no two opmask registers, are equal.
Registers CountedRegisters() {
  Registers registers;
  for (unsigned number = 0; number < kVecRegisters; ++number) {
    for (unsigned i = 0; i < kVecQuads; ++i) {
      registers.quad(number, i) = 100 + kVecQuads * number + i;
    }
  }
  for (unsigned i = 0; i < kOpmasks; ++i) {
    registers.opmask[i] = 1000 + i;
  }
  return registers;
}

constexpr unsigned kVecComponents[] = {kComponentSse, kComponentAvx,
                                       kComponentZmm, kComponentHighZmm};

TEST(XsaveTest, EachQuadwordIsOfOneComponent) {
  const Registers counted = CountedRegisters();
  Registers restored;
  for (const unsigned component : kVecComponents) {
    EachQuadOf(component, [&](unsigned number, unsigned i) {
      EXPECT_EQ(restored.quad(number, i), 0u) << component << " " << number;
      restored.quad(number, i) = counted.quad(number, i);
    });
  }
  EXPECT_EQ(restored.vec, counted.vec);
}

// Source: Intel SDM vol. 1, "Opmask State", "ZMM_Hi256 State" and "Hi16_ZMM
// State" of "XSAVE-Managed State".
TEST(XsaveTest, MemoryHasOneRegisterBehindTheOther) {
  const Registers registers = CountedRegisters();
  const auto word = [&](unsigned component, size_t i) {
    std::vector<uint64_t> words(ComponentBytes(component) / sizeof(uint64_t));
    StoreComponent(registers, component,
                   std::as_writable_bytes(std::span(words)));
    return words.at(i);
  };
  EXPECT_EQ(word(kComponentSse, 2 * 3 + 1), registers.quad(3, 1));
  EXPECT_EQ(word(kComponentAvx, 2 * 15), registers.quad(15, 2));
  EXPECT_EQ(word(kComponentOpmask, 7), registers.opmask[7]);
  EXPECT_EQ(word(kComponentZmm, 4 * 9 + 3), registers.quad(9, 7));
  EXPECT_EQ(word(kComponentHighZmm, 0), registers.quad(16, 0));
  EXPECT_EQ(word(kComponentHighZmm, 8 * 15 + 7), registers.quad(31, 7));
}

TEST(XsaveTest, WhatIsStoredIsRestored) {
  const Registers counted = CountedRegisters();
  Registers restored;
  std::array<std::byte, kComponentBytesMax> room;
  const auto restore = [&](unsigned component) {
    const auto bytes = std::span(room).first(ComponentBytes(component));
    StoreComponent(counted, component, bytes);
    RestoreComponent(component, bytes, restored);
  };
  restore(kComponentSse);
  for (const unsigned component : kExtendedComponents) {
    restore(component);
  }
  EXPECT_EQ(restored.vec, counted.vec);
  EXPECT_EQ(restored.opmask, counted.opmask);
  EXPECT_TRUE(restored.avx_in_use && restored.opmask_in_use &&
              restored.zmm_in_use && restored.high_zmm_in_use);
  InitialiseExtendedState(restored);
  EXPECT_EQ(restored, Registers());
}

TEST(XsaveTest, MakersDifferInWhatIsInUse) {
  Registers intel;
  intel.mxcsr_mask = 0xffff;
  intel.vec = CountedRegisters().vec;
  EXPECT_EQ(ComponentsInUse(intel), Bit(kComponentSse)) << "by its flags";
  intel.zmm_in_use = true;
  intel.x87.in_use = true;
  EXPECT_EQ(ComponentsInUse(intel),
            Bit(kComponentX87) | Bit(kComponentSse) | Bit(kComponentZmm));
  Registers amd;
  amd.mxcsr_mask = 0x2ffff;
  amd.avx_in_use = true;
  EXPECT_EQ(ComponentsInUse(amd), 0u) << "by its values";
  amd.opmask[7] = 1;
  amd.quad(15, 7) = 1;
  EXPECT_EQ(ComponentsInUse(amd), Bit(kComponentOpmask) | Bit(kComponentZmm));
  amd.quad(31, 0) = 1;
  EXPECT_EQ(ComponentsInUse(amd), Bit(kComponentOpmask) | Bit(kComponentZmm) |
                                      Bit(kComponentHighZmm));
}

// An area with all components, at the places of `layout`, and `xstate_bv`.
std::vector<std::byte> AreaOf(const Registers& registers,
                              const XsaveLayout& layout, uint64_t xstate_bv) {
  std::vector<std::byte> area(4096);
  FxsaveArea legacy = {};
  legacy.pointers.mxcsr = registers.mxcsr;
  legacy.xmm = registers.low_lane(0);
  XsaveHeader header = {};
  header.xstate_bv = xstate_bv;
  std::memcpy(area.data(), &legacy, sizeof(legacy));
  std::memcpy(area.data() + sizeof(legacy), &header, sizeof(header));
  for (const unsigned component : kExtendedComponents) {
    StoreComponent(registers, component,
                   std::span(area).subspan(layout.components[component].offset,
                                           ComponentBytes(component)));
  }
  return area;
}

TEST(XsaveTest, AnAreaIsRestoredFromWhereTheLayoutHasIt) {
  const Registers counted = CountedRegisters();
  for (const uint32_t mxcsr_mask : {0xffffu, 0x2ffffu}) {
    Registers registers;
    registers.mxcsr_mask = mxcsr_mask;
    const XsaveLayout& layout = UsualLayout(registers);
    const auto area = AreaOf(counted, layout, 0xe6);
    RestoreXsave(area, layout, registers);
    EXPECT_EQ(registers.vec, counted.vec);
    EXPECT_EQ(registers.opmask, counted.opmask);
    // Cut off within the last component.
    RestoreXsave(std::span(area).first(
                     layout.components[kComponentHighZmm].offset + 1023),
                 layout, registers);
    EXPECT_EQ(registers.quad(15, 7), counted.quad(15, 7));
    EXPECT_EQ(registers.quad(16, 0), 0u);
    EXPECT_FALSE(registers.high_zmm_in_use);
  }
}

TEST(XsaveTest, WhatAnAreaDoesNotMarkIsInitialised) {
  const Registers counted = CountedRegisters();
  for (const unsigned without : kExtendedComponents) {
    Registers registers = counted;
    RestoreXsave(AreaOf(counted, XsaveLayout(), 0xe6 & ~Bit(without)),
                 XsaveLayout(), registers);
    Registers expected = counted;
    RestoreComponent(without, {}, expected);
    EXPECT_EQ(registers.vec, expected.vec) << without;
    EXPECT_EQ(registers.opmask, expected.opmask) << without;
  }
}

}  // namespace
}  // namespace clew::machine
