// Goal: the table tells what CPUID told whoever made it, for any EAX and ECX.
// Method: against this host's CPU, exhaustively in leaves and sub-leaves; a CPU
// that is made up, for what no host has.
#include "common/x86/cpuid_table.h"

#include <gtest/gtest.h>

namespace clew::x86 {
namespace {

bool Same(const CpuidResult& a, const CpuidResult& b) {
  return a.eax == b.eax && a.ebx == b.ebx && a.ecx == b.ecx && a.edx == b.edx;
}

// What a core tells of itself: the test may be moved to another.
CpuidResult WithoutApicId(uint32_t leaf, CpuidResult told) {
  if (leaf == 1) {
    told.ebx &= 0x00ffffff;
  }
  if (leaf == 0xb || leaf == 0x1f) {
    told.edx = 0;
  }
  return told;
}

TEST(CpuidTableTest, TellsWhatTheHostTells) {
  const auto ask = [](uint32_t leaf, uint32_t sub_leaf) {
    return WithoutApicId(leaf, AskCpuid(leaf, sub_leaf));
  };
  const CpuidTable table = CpuidTable::Ask(ask);
  for (const uint32_t first : {uint32_t{0}, 0x80000000}) {
    const uint32_t last = AskCpuid(first, 0).eax;
    for (uint32_t leaf = first; leaf <= last; ++leaf) {
      for (const uint32_t sub_leaf : {0, 1, 2, 3, 9, 31}) {
        EXPECT_TRUE(Same(table.Find(leaf, sub_leaf), ask(leaf, sub_leaf)))
            << std::hex << leaf << ", " << sub_leaf;
      }
    }
  }
}

// Leaves without sub-leaves do not look at ECX.
TEST(CpuidTableTest, EcxCountsWhereThereAreSubLeaves) {
  const CpuidTable table = CpuidTable::Ask([](uint32_t leaf, uint32_t sub) {
    return CpuidResult{.eax = leaf == 0 ? 0xd : leaf, .ebx = sub + 1};
  });
  EXPECT_EQ(table.Find(1, 0xffff).ebx, 1u);
  EXPECT_EQ(table.Find(7, 3).ebx, 4u);
  EXPECT_EQ(table.Find(7, 0xffff).ebx, 0u);
  EXPECT_EQ(table.Find(0xe, 0).eax, 0u) << "past the last leaf";
}

TEST(CpuidTableTest, ACpuThatSaysItHasEveryLeafIsAskedForSome) {
  int asked = 0;
  const CpuidTable table = CpuidTable::Ask([&](uint32_t, uint32_t) {
    ++asked;
    return CpuidResult{.eax = UINT32_MAX};
  });
  EXPECT_LT(asked, 5000);
  EXPECT_LE(table.leaves().size(), static_cast<size_t>(asked));
}

TEST(CpuidTableTest, NothingIsToldByAnEmptyOne) {
  EXPECT_TRUE(Same(CpuidTable().Find(1, 0), {}));
}

TEST(CpuidTableTest, TheFirstOfTwoCounts) {
  const CpuidTable table({{.leaf = 7, .sub_leaf = 1, .told = {.eax = 4}},
                          {.leaf = 1, .sub_leaf = 0, .told = {.eax = 1}},
                          {.leaf = 1, .sub_leaf = 0, .told = {.eax = 2}}});
  EXPECT_EQ(table.Find(1, 0).eax, 1u);
  EXPECT_EQ(table.Find(7, 1).eax, 4u);
}

}  // namespace
}  // namespace clew::x86
