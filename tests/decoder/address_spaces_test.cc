// Goal: at each time a process has what was mapped since its last execve, and
// before it, if it was forked, what its parent had then; what a scan tells is
// of the beginning or, in a snapshot, of the end. Method: records told in
// another order than that of time; what is at one address is asked for.
#include "decoder/address_spaces.h"

#include <gtest/gtest.h>

namespace clew::decoder {
namespace {

using bundle::MmapRecord;

constexpr uint64_t kPage = 4096;
constexpr TscTicks kEnd(UINT64_MAX);

MmapRecord Mapping(int32_t process, const std::string& path,
                   uint64_t addr = kPage) {
  MmapRecord mapping;
  mapping.pid = process;
  mapping.addr = TraceeAddr(addr);
  mapping.size_bytes = kPage;
  mapping.executable = true;
  mapping.path = path;
  return mapping;
}

class AddressSpacesTest : public testing::Test {
 protected:
  AddressSpacesTest() { spaces_.SetSeveral(); }

  void Map(int32_t process, const std::string& path, uint64_t time,
           uint64_t addr = kPage) {
    spaces_.AddMapping(Mapping(process, path, addr), TscTicks(time), "");
  }
  // "-" if nothing is there.
  std::string At(int32_t process, TscTicks time, uint64_t addr = kPage) const {
    const CodeMap map = spaces_.MapOf(spaces_.At(process, time));
    const std::string text = map.Describe(TraceeAddr(addr));
    return text.starts_with('"') ? text.substr(1, text.find('"', 1) - 1) : "-";
  }

  AddressSpaces spaces_;
};

TEST_F(AddressSpacesTest, AnExecTakesAllAway) {
  Map(1, "new", 31);
  spaces_.AddExec(1, TscTicks(30));
  Map(1, "old", 10);
  Map(1, "library", 11, 2 * kPage);
  spaces_.Build(false);
  EXPECT_EQ(At(1, TscTicks(0)), "old");
  EXPECT_EQ(At(1, TscTicks(29)), "old");
  EXPECT_EQ(At(1, TscTicks(29), 2 * kPage), "library");
  EXPECT_EQ(At(1, TscTicks(30)), "new");
  EXPECT_EQ(At(1, kEnd, 2 * kPage), "-");
}

TEST_F(AddressSpacesTest, AChildHasWhatItsParentHadThen) {
  Map(1, "program", 10);
  spaces_.AddFork(1, 2, TscTicks(20));
  Map(1, "later", 25, 2 * kPage);
  spaces_.AddFork(2, 3, TscTicks(30));
  Map(2, "own", 40, 3 * kPage);
  spaces_.AddExec(1, TscTicks(50));
  Map(1, "new", 51);
  spaces_.Build(false);
  for (const int32_t child : {2, 3}) {
    EXPECT_EQ(At(child, kEnd), "program");
    EXPECT_EQ(At(child, kEnd, 2 * kPage), "-");
  }
  EXPECT_EQ(At(2, kEnd, 3 * kPage), "own");
  EXPECT_EQ(At(3, kEnd, 3 * kPage), "-");
  EXPECT_EQ(At(1, TscTicks(49), 2 * kPage), "later");
  EXPECT_EQ(At(1, kEnd), "new");
}

TEST_F(AddressSpacesTest, AScannedForkInheritsNothing) {
  Map(1, "parent", 0);
  Map(1, "parent", 0, 2 * kPage);
  spaces_.AddFork(1, 2, TscTicks(0));
  Map(2, "child", 0);
  spaces_.Build(false);
  EXPECT_EQ(At(2, kEnd), "child");
  EXPECT_EQ(At(2, kEnd, 2 * kPage), "-");
}

TEST_F(AddressSpacesTest, WhatASnapshotTellsIsOfTheEnd) {
  for (const bool snapshot : {false, true}) {
    spaces_ = {};
    spaces_.SetSeveral();
    Map(1, "scanned", 0);
    Map(2, "parent", 0);
    spaces_.AddExec(1, TscTicks(30));
    spaces_.AddFork(2, 3, TscTicks(40));
    spaces_.Build(snapshot);
    EXPECT_EQ(At(1, TscTicks(29)), snapshot ? "-" : "scanned");
    EXPECT_EQ(At(1, kEnd), snapshot ? "scanned" : "-");
    EXPECT_EQ(At(3, kEnd), "parent");
  }
}

TEST_F(AddressSpacesTest, OfAStrangerNothingIsKnown) {
  Map(1, "program", 10);
  Map(2, "program", 10);
  spaces_.AddFork(7, 8, TscTicks(20));
  spaces_.Build(false);
  EXPECT_EQ(spaces_.At(8, kEnd), kSpaceUnknown);
  EXPECT_EQ(At(8, kEnd), "-");
}

TEST(OneAddressSpaceTest, ServesAllIfThereIsNoOther) {
  AddressSpaces spaces;
  spaces.AddMapping(Mapping(1, "program"), TscTicks(10), "");
  spaces.AddExec(1, TscTicks(30));
  spaces.Build(false);
  for (const int32_t process : {0, 1, 2}) {
    EXPECT_EQ(spaces.At(process, kEnd), spaces.At(1, TscTicks(0)));
    const CodeMap map = spaces.MapOf(spaces.At(process, kEnd));
    ASSERT_FALSE(map.initial().empty());
    EXPECT_EQ(map.initial().front()->mapping.path, "program");
  }
}

}  // namespace
}  // namespace clew::decoder
