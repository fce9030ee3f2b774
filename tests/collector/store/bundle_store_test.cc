// Goal: a bundle is listed exactly from its commit to its removal, needs all of
// its chunks, gives its files back byte by byte, and damage on disk is named.
// Method: hand-picked histories; every file of a store damaged and removed; the
// k-th file operation failing for every k.
#include "collector/store/bundle_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/collector/samples.h"
#include "tests/support/power_cut_files.h"

namespace clew::collector {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::SizeIs;

class BundleStoreTest : public testing::Test {
 protected:
  void SetUp() override { Open(); }
  void Open() {
    store_ = nullptr;
    auto store = BundleStore::Open(files_, Options());
    ASSERT_TRUE(store.has_value()) << store.error().message;
    store_ = std::move(*store);
  }
  BundleStore::Options Options() {
    return StoreOptions(folder_ / "data", &now_s_);
  }
  Files Stored() { return ReadFiles(folder_ / "data"); }

  const TempFolder folder_;
  PowerCutFiles files_{folder_.path()};
  uint64_t now_s_ = 5000;
  const Sample first_ = SmallSample("first", "shared");
  const Sample second_ = SmallSample("second", "shared");
  std::unique_ptr<BundleStore> store_;
};

TEST_F(BundleStoreTest, ABundleIsListedFromCommitToRemoval) {
  ASSERT_TRUE(SendBundle(*store_, first_).has_value());
  ASSERT_TRUE(SendBundle(*store_, first_).has_value()) << "twice is once";
  for (int i = 0; i < 2; ++i) {
    ASSERT_THAT(store_->List(), SizeIs(1));
    EXPECT_EQ(store_->List()[0].id, first_.list.id());
    EXPECT_EQ(store_->List()[0].size_bytes, first_.list.size_bytes());
    EXPECT_EQ(store_->List()[0].file_count, 4u);
    EXPECT_EQ(*store_->ReadList(first_.list.id()), first_.list);
    Open();
  }
  ASSERT_TRUE(store_->Remove(first_.list.id()).has_value());
  EXPECT_THAT(store_->List(), SizeIs(0));
  EXPECT_FALSE(store_->ReadList(first_.list.id()).has_value());
  EXPECT_FALSE(store_->Remove(first_.list.id()).has_value());
  EXPECT_EQ(store_->used_bytes(), 0u);
  EXPECT_THAT(Stored(), SizeIs(1)) << "the lock alone";
}

TEST_F(BundleStoreTest, ACommitNeedsEveryChunk) {
  const auto chunks = first_.list.Chunks();
  for (size_t absent = 0; absent < chunks.size(); ++absent) {
    for (size_t i = 0; i < chunks.size(); ++i) {
      if (i != absent) {
        ASSERT_TRUE(SendChunk(store_->chunks(), first_, chunks[i]).has_value());
      }
    }
    const Status committed = store_->Commit(first_.list);
    ASSERT_FALSE(committed.has_value());
    EXPECT_THAT(committed.error().message, HasSubstr("chunks are missing"));
    EXPECT_THAT(store_->List(), SizeIs(0));
    EXPECT_FALSE(
        fs::exists(folder_ / "data/bundles/" + first_.list.id().hex() + ".pb"));
    ASSERT_TRUE(store_->chunks().Drop(chunks).has_value());
  }
}

TEST_F(BundleStoreTest, AChunkOfTwoBundlesIsSentOnceAndGoesWithTheLast) {
  ASSERT_TRUE(SendBundle(*store_, first_).has_value());
  EXPECT_THAT(store_->chunks().Missing(second_.list.Chunks()), SizeIs(1));
  ASSERT_TRUE(SendBundle(*store_, second_).has_value());
  ASSERT_TRUE(store_->Remove(first_.list.id()).has_value());
  EXPECT_THAT(store_->chunks().Missing(second_.list.Chunks()), SizeIs(0));
  EXPECT_THAT(store_->chunks().Missing(first_.list.Chunks()), SizeIs(1));
  Open();
  ASSERT_TRUE(store_->Materialise(second_.list.id(), folder_ / "out"));
  EXPECT_EQ(ReadFiles(folder_ / "out"), second_.files);
  now_s_ += ChunkStore::kKeepDay_s;
  EXPECT_EQ(store_->Expire(), 0u) << "every chunk is needed";
}

TEST_F(BundleStoreTest, AFolderComesBackByteByByteAndReplacesNothing) {
  const Sample big({{"manifest.pb", "m"},
                    {"perf.data", std::string(kChunkBytes + 3, 'p')},
                    {"images/ab/x", "y"}});
  ASSERT_TRUE(SendBundle(*store_, big).has_value());
  WriteFiles(folder_.path(), {{"out.partial/old", "left by a crash"}});
  ASSERT_TRUE(store_->Materialise(big.list.id(), folder_ / "out"));
  EXPECT_EQ(ReadFiles(folder_ / "out"), big.files);
  EXPECT_FALSE(fs::exists(folder_ / "out.partial"));
  EXPECT_EQ(*FileList::OfBundle(folder_ / "out"), big.list);
  const Status again = store_->Materialise(big.list.id(), folder_ / "out");
  ASSERT_FALSE(again.has_value());
  EXPECT_EQ(again.error().code, ErrorCode::kInvalidArgument);
}

TEST_F(BundleStoreTest, AScratchCopyIsTheSameAndSyncsNothing) {
  ASSERT_TRUE(SendBundle(*store_, first_).has_value());
  int before = files_.operations();
  ASSERT_TRUE(store_->Materialise(first_.list.id(), folder_ / "durable"));
  const int durable = files_.operations() - before;
  before = files_.operations();
  ASSERT_TRUE(store_->Materialise(first_.list.id(), folder_ / "scratch",
                                  BundleStore::Sync::kNothing));
  EXPECT_EQ(ReadFiles(folder_ / "scratch"), first_.files);
  // Four files, three folders and the parent.
  EXPECT_EQ(files_.operations() - before, durable - 8);
}

TEST_F(BundleStoreTest, OneCollectorAtATime) {
  const auto second = BundleStore::Open(files_, Options());
  ASSERT_FALSE(second.has_value());
  EXPECT_THAT(second.error().message, HasSubstr("open in another collector"));
}

TEST_F(BundleStoreTest, TheBudgetCountsLists) {
  store_ = nullptr;
  auto options = Options();
  options.budget_bytes = first_.list.size_bytes();
  auto store = BundleStore::Open(files_, options);
  const Status sent = SendBundle(**store, first_);
  ASSERT_FALSE(sent.has_value());
  EXPECT_EQ(sent.error().code, ErrorCode::kLimit);
  EXPECT_THAT((*store)->List(), SizeIs(0));
  EXPECT_EQ((*store)->used_bytes(), options.budget_bytes);
}

// Each file of the store in turn: changed by one bit, cut, removed.
TEST_F(BundleStoreTest, CheckNamesEveryDamage) {
  ASSERT_TRUE(SendBundle(*store_, first_).has_value());
  ASSERT_TRUE(SendBundle(*store_, second_).has_value());
  ASSERT_TRUE(store_->Check().faults.empty());
  EXPECT_EQ(store_->Check().bundles, 2u);
  const Files sound = Stored();
  ASSERT_THAT(sound, SizeIs(7)) << "lock, two lists, four chunks";
  for (const auto& [name, contents] : sound) {
    if (name == "lock") {
      continue;
    }
    SCOPED_TRACE(name);
    const std::string path = folder_ / "data/" + name;
    std::string flipped = contents;
    flipped.back() = static_cast<char>(flipped.back() ^ 1);
    const std::string cut = contents.substr(0, contents.size() - 1);
    for (const std::string& damage : {flipped, cut}) {
      fs::remove(path);
      WriteFiles("/", {{path, damage}});
      EXPECT_FALSE(store_->Check().faults.empty());
      Open();
      EXPECT_FALSE(store_->Check().faults.empty());
    }
    fs::remove(path);
    Open();
    const bool list = name.starts_with("bundles/");
    EXPECT_EQ(store_->Check().faults.empty(), list) << "a list is the bundle";
    EXPECT_EQ(store_->Check().orphans.size(),
              list ? 1u : store_->Check().orphans.size());
    WriteFiles("/", {{path, contents}});
    Open();
    ASSERT_TRUE(store_->Check().faults.empty());
  }
}

TEST_F(BundleStoreTest, ADamagedBundleIsNotListedAndCanBeSentAgainOrRemoved) {
  ASSERT_TRUE(SendBundle(*store_, first_).has_value());
  const std::string name = first_.list.id().hex() + ".pb";
  const std::string path = folder_ / "data/bundles/" + name;
  for (const bool send_again : {true, false}) {
    fs::remove(path);
    WriteFiles("/", {{path, "garbage"}});
    Open();
    EXPECT_THAT(store_->List(), SizeIs(0));
    EXPECT_TRUE(store_->Damaged().contains(name));
    now_s_ += ChunkStore::kKeepDay_s;
    EXPECT_EQ(store_->Expire(), 0u) << "nobody knows what the list needs";
    if (send_again) {
      ASSERT_TRUE(SendBundle(*store_, first_).has_value());
      EXPECT_THAT(store_->List(), SizeIs(1));
    } else {
      ASSERT_TRUE(store_->Remove(first_.list.id()).has_value());
    }
    EXPECT_THAT(store_->Damaged(), SizeIs(0));
  }
  EXPECT_EQ(store_->Expire(), 3u);
}

TEST_F(BundleStoreTest, EveryFailingOperationLeavesAllOrNothing) {
  bool finished = false;
  int works = 0;
  for (; !finished; ++works) {
    ASSERT_LT(works, 100) << "the commit never ends";
    files_.FailAfter(works);
    finished = SendBundle(*store_, first_).has_value();
    files_.Heal();
    EXPECT_THAT(store_->List(), SizeIs(finished ? 1 : 0)) << works;
    now_s_ += ChunkStore::kKeepDay_s;
    ASSERT_TRUE(SendBundle(*store_, first_).has_value()) << works;
    ASSERT_TRUE(store_->Check().faults.empty());
    // Removal fails at its first and second operation, then works.
    for (int k = 0; k < 2; ++k) {
      files_.FailAfter(k);
      EXPECT_FALSE(store_->Remove(first_.list.id()).has_value()) << k;
      EXPECT_THAT(store_->List(), SizeIs(0)) << k;
      files_.Heal();
    }
    ASSERT_TRUE(store_->Remove(first_.list.id()).has_value());
    Open();
    EXPECT_EQ(store_->used_bytes(), 0u) << works;
    EXPECT_THAT(store_->List(), SizeIs(0));
  }
  EXPECT_GT(works, 15);
}

}  // namespace
}  // namespace clew::collector
