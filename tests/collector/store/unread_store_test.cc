// Goal: a store that is used while it is read ends as one that was read before:
// the same bundles, bytes and damage; nothing that a list needs goes meanwhile.
// Method: exhaustive over the moments: each operation of a client at each step
// of ReadAll, then compared with the store opened anew, which reads everything.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <functional>

#include "collector/store/bundle_store.h"
#include "tests/collector/samples.h"
#include "tests/support/power_cut_files.h"

namespace clew::collector {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;

constexpr int kStepsMax = 100;

class UnreadStoreTest : public testing::Test {
 protected:
  using Operation = std::function<void()>;

  // Two bundles that share a chunk, and chunks of a third that nobody
  // committed.
  void Fill() {
    fs::remove_all(folder_ / "data");
    Open(false);
    ASSERT_TRUE(SendBundle(*store_, first_).has_value());
    ASSERT_TRUE(SendBundle(*store_, second_).has_value());
    for (const ChunkRef& chunk : third_.list.Chunks()) {
      ASSERT_TRUE(SendChunk(store_->chunks(), third_, chunk).has_value());
    }
  }
  void Open(bool read_later) {
    store_ = nullptr;
    BundleStore::Options options = StoreOptions(folder_ / "data", &now_s_);
    options.read_later = read_later;
    auto store = BundleStore::Open(files_, options);
    ASSERT_TRUE(store.has_value()) << store.error().message;
    store_ = std::move(*store);
  }
  Status ReadAll() {
    return store_->ReadAll([] { return true; });
  }
  std::string Shared() const {
    const auto& files = first_.list.files();
    const auto image = std::ranges::find_if(files, [](const FileEntry& file) {
      return file.path.ends_with("so.6");
    });
    return store_->chunks().PathOf(image->chunks.at(0));
  }
  void ReadWith(const Operation& operation, int step) {
    int steps = 0;
    ASSERT_TRUE(store_
                    ->ReadAll([&] {
                      if (steps++ == step) {
                        operation();
                      }
                      return true;
                    })
                    .has_value());
    done_ = steps <= step;
  }

  // As it is, and as a store is that has read everything from the same disk.
  void ExpectAsReadBefore() {
    const auto ids = [&] {
      std::vector<BundleId> found;
      for (const StoredBundle& bundle : store_->List()) {
        found.push_back(bundle.id);
      }
      return found;
    };
    const auto found = ids();
    const uint64_t used_bytes = store_->used_bytes();
    const auto damaged = store_->DamagedBundles();
    const auto unheld = store_->chunks().Unheld();
    Open(false);
    EXPECT_EQ(found, ids());
    EXPECT_EQ(used_bytes, store_->used_bytes());
    EXPECT_EQ(damaged, store_->DamagedBundles());
    EXPECT_EQ(unheld, store_->chunks().Unheld());
  }

  void AtEveryStep(
      const Operation& operation, const std::function<void()>& before = [] {}) {
    done_ = false;
    for (int step = 0; !done_ && !HasFatalFailure(); ++step) {
      ASSERT_LT(step, kStepsMax);
      SCOPED_TRACE(step);
      Fill();
      before();
      Open(true);
      ReadWith(operation, step);
      EXPECT_TRUE(store_->IsAllRead());
      ExpectAsReadBefore();
    }
  }

  const TempFolder folder_;
  PowerCutFiles files_{folder_.path()};
  uint64_t now_s_ = 5000;
  const Sample first_ = SmallSample("first", "shared");
  const Sample second_ = SmallSample("second", "shared");
  const Sample third_ = SmallSample("third", "other");
  const Sample fourth_ = SmallSample("fourth", "shared");
  std::unique_ptr<BundleStore> store_;
  bool done_ = false;
};

TEST_F(UnreadStoreTest, WhatIsNamedIsThereBeforeAnythingIsRead) {
  Fill();
  Open(true);
  EXPECT_FALSE(store_->IsAllRead());
  EXPECT_THAT(store_->List(), IsEmpty());
  EXPECT_EQ(*store_->ReadList(first_.list.id()), first_.list);
  EXPECT_EQ(store_->ReadReceipt(first_.list.id())->value().host, "web1");
  EXPECT_THAT(*store_->WithPrefix(first_.list.id().hex().substr(0, 9)),
              ElementsAre(first_.list.id()));
  EXPECT_THAT(*store_->WithPrefix(""), SizeIs(2));
  EXPECT_FALSE(store_->ReadList(third_.list.id()).has_value());
  EXPECT_THAT(store_->chunks().Missing(third_.list.Chunks()), IsEmpty());
  EXPECT_THAT(store_->chunks().Missing(fourth_.list.Chunks()), SizeIs(1));
  EXPECT_TRUE(store_->IsWhole(first_.list.id()));
  EXPECT_TRUE(
      store_->Materialise(second_.list.id(), folder_ / "out").has_value());
  EXPECT_EQ(ReadFiles(folder_ / "out"), second_.files);
}

TEST_F(UnreadStoreTest, AnyOperationAtAnyStepIsAsIfAllWasRead) {
  const std::vector<Operation> operations = {
      [this] { ASSERT_TRUE(SendBundle(*store_, fourth_).has_value()); },
      [this] { ASSERT_TRUE(SendBundle(*store_, third_).has_value()); },
      [this] {  // the first one's receipt stays
        ASSERT_TRUE(
            store_->Commit(first_.list, {.host = "thief", .received_at_s = 9})
                .has_value());
        EXPECT_EQ(store_->ReadReceipt(first_.list.id())->value().host, "web1");
      },
      [this] { EXPECT_TRUE(store_->IsWhole(second_.list.id())); },
      [this] {  // a commit that fails, and is given up
        files_.FailAfter(1);
        EXPECT_FALSE(
            store_->Commit(third_.list, {.host = "web1", .received_at_s = 7})
                .has_value());
        files_.Heal();
        EXPECT_TRUE(SendBundle(*store_, third_).has_value());
      },
      [this] {  // nothing goes, although nobody holds it yet
        EXPECT_TRUE(store_->chunks().Drop(first_.list.Chunks()).has_value());
        now_s_ += 2 * ChunkStore::kKeepDay_s;
        EXPECT_EQ(*store_->Expire(), 0u);
        EXPECT_THAT(store_->chunks().Missing(first_.list.Chunks()), IsEmpty());
      },
  };
  for (const Operation& operation : operations) {
    AtEveryStep(operation);
  }
}

TEST_F(UnreadStoreTest, DamageIsFoundAndHealedAtAnyStep) {
  const auto flip = [&] { WriteFiles("", {{Shared(), "shareD"}}); };
  const auto lose = [&] { fs::remove(Shared()); };
  const std::vector<std::function<void()>> damages = {flip, lose};
  for (const auto& damage : damages) {
    AtEveryStep(
        [this] {
          // As a client that sends the first one again.
          store_->chunks().Verify(first_.list.Chunks());
          EXPECT_FALSE(store_->IsWhole(first_.list.id()));
          EXPECT_THAT(store_->chunks().Missing(first_.list.Chunks()),
                      SizeIs(1));
        },
        damage);
    Open(true);
    store_->chunks().Verify(first_.list.Chunks());
    ASSERT_TRUE(SendBundle(*store_, first_).has_value());
    EXPECT_TRUE(store_->IsWhole(first_.list.id()));
    ASSERT_TRUE(ReadAll().has_value());
    EXPECT_THAT(store_->DamagedBundles(), IsEmpty());
    ExpectAsReadBefore();
  }
}

TEST_F(UnreadStoreTest, WhatIsDamagedIsSetAsideAndNotRemoved) {
  Fill();
  const std::string path = Shared();
  WriteFiles("", {{path, "shareD"}});
  Open(true);
  store_->chunks().Verify(first_.list.Chunks());
  EXPECT_FALSE(Exists(path));
  ASSERT_TRUE(ReadAll().has_value());
  EXPECT_THAT(store_->DamagedBundles(),
              UnorderedElementsAre(first_.list.id(), second_.list.id()));
  const std::string aside =
      folder_ / ("data/damaged/" + fs::path(path).filename().string());
  EXPECT_THAT(ReadFiles(folder_ / "data/damaged"), SizeIs(1));
  EXPECT_TRUE(Exists(aside));
}

TEST_F(UnreadStoreTest, NothingIsRemovedBeforeItIsAllowed) {
  Fill();
  Open(true);
  for (int i = 0; i < 2; ++i) {
    const Status removed = store_->Remove(first_.list.id());
    ASSERT_FALSE(removed.has_value());
    EXPECT_EQ(removed.error().code, ErrorCode::kSystem);
    EXPECT_EQ(removed.error().sys_errno, EAGAIN);
    ASSERT_TRUE(ReadAll().has_value());
  }
  store_->AllowRemovals();
  ASSERT_TRUE(store_->Remove(first_.list.id()).has_value());
  EXPECT_THAT(store_->chunks().Missing(second_.list.Chunks()), IsEmpty());
  ExpectAsReadBefore();
}

TEST_F(UnreadStoreTest, AReadThatWasStoppedBeginsAgain) {
  for (int stop = 0; stop < kStepsMax; ++stop) {
    SCOPED_TRACE(stop);
    Fill();
    Open(true);
    int steps = 0;
    const Status read = store_->ReadAll([&] { return steps++ < stop; });
    EXPECT_EQ(read.has_value(), store_->IsAllRead());
    if (read) {
      ASSERT_GT(stop, 5);
      return;
    }
    EXPECT_EQ(read.error().sys_errno, ECANCELED);
    ASSERT_TRUE(ReadAll().has_value());
    ExpectAsReadBefore();
  }
  FAIL() << "never read";
}

}  // namespace
}  // namespace clew::collector
