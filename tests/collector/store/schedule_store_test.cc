// Goal: a schedule that Put returned is there after a power cut, whole; one
// that was being written is whole or not there. Method: exhaustive over the
// writer's operations, with what an unsynced disk may hold.
#include "collector/store/schedule_store.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "common/check.h"
#include "tests/collector/catalogue/catalogue_model.h"
#include "tests/collector/samples.h"
#include "transfer/protocol.h"

namespace clew::collector {
namespace {

namespace fs = std::filesystem;

std::string Text(const ScheduleStore& store, const BundleId& id) {
  const auto bytes = store.Read(id);
  CLEW_CHECK(bytes.has_value(), "{}", bytes.error().message);
  if (!*bytes) {
    return "none";
  }
  return {reinterpret_cast<const char*>((*bytes)->data()), (*bytes)->size()};
}

TEST(ScheduleStoreTest, GivesWhatWasPutUntilItIsRemoved) {
  const TempFolder folder;
  {
    const auto store = ScheduleStore::Open(PosixFileSystem(), folder / "s");
    ASSERT_TRUE(store);
    EXPECT_EQ(Text(**store, IdOf(1)), "none");
    ASSERT_TRUE((*store)->Put(IdOf(1), Bytes("one")));
    ASSERT_TRUE((*store)->Put(IdOf(1), Bytes("another")));
    ASSERT_TRUE((*store)->Put(IdOf(2), Bytes("two")));
    EXPECT_EQ((*store)->used_bytes(), 10u);
  }
  WriteFiles(folder / "s", {{"x.partial", "left"}, {"readme", "a stranger's"}});
  const auto store = ScheduleStore::Open(PosixFileSystem(), folder / "s");
  ASSERT_TRUE(store);
  EXPECT_FALSE(fs::exists(folder / "s/x.partial"));
  EXPECT_TRUE(fs::exists(folder / "s/readme"));
  EXPECT_EQ(Text(**store, IdOf(1)), "another");
  EXPECT_EQ(Text(**store, IdOf(2)), "two");
  EXPECT_TRUE((*store)->Remove(IdOf(1)));
  EXPECT_TRUE((*store)->Remove(IdOf(1)));
  EXPECT_EQ(Text(**store, IdOf(1)), "none");
  EXPECT_EQ((*store)->List(), std::vector{IdOf(2)});
  EXPECT_EQ((*store)->used_bytes(), 3u);
}

TEST(ScheduleStoreTest, RefusesWhatIsTooLarge) {
  const TempFolder folder;
  const auto store = ScheduleStore::Open(PosixFileSystem(), folder / "s");
  ASSERT_TRUE(store);
  const std::vector<std::byte> large(transfer::kScheduleBytesMax + 1);
  const auto refused = (*store)->Put(IdOf(1), large);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kLimit);
  EXPECT_EQ(Text(**store, IdOf(1)), "none");
}

TEST(ScheduleStoreTest, PowerCutAfterEveryOperationLeavesAllOrNothing) {
  bool finished = false;
  int outcomes = 0;
  for (int works = 0; !finished; ++works) {
    ASSERT_LT(works, 100) << "Put never finishes";
    const TempFolder folder;
    PowerCutFiles files(folder.path());
    const auto store = ScheduleStore::Open(files, folder / "s");
    ASSERT_TRUE(store);
    ASSERT_TRUE((*store)->Put(IdOf(1), Bytes("old")));
    files.FailAfter(works);
    finished = (*store)->Put(IdOf(1), Bytes("new, and longer")).has_value();
    bool complete = false;
    outcomes += ForEveryChoice(
        1000, 1,
        [&](const PowerCutFiles::Choose& choose) {
          const TempFolder after;
          files.AfterCut(after / "disk", choose);
          const auto found =
              ScheduleStore::Open(PosixFileSystem(), after / "disk/s");
          ASSERT_TRUE(found);
          const std::string text = Text(**found, IdOf(1));
          EXPECT_TRUE(text == "new, and longer" || (!finished && text == "old"))
              << text << " after " << works << " operations";
        },
        &complete);
    EXPECT_TRUE(complete);
  }
  std::printf("%d states of the disk\n", outcomes);
}

}  // namespace
}  // namespace clew::collector
