// Goal: what the disk loses or changes costs no bundle that comes later: a
// damaged chunk is missing, the bundles that need it are named, and one upload
// of any of them heals all; a read error is an error and nothing worse.
// Method: bits flipped at random in a store of 100 bundles, against the bytes
// that were sent; files cut, removed and made unreadable; all of it again after
// a restart.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <set>

#include "collector/store/bundle_store.h"
#include "collector/upkeep/scrubber.h"
#include "tests/collector/samples.h"

namespace clew::collector {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class RotTest : public testing::Test {
 protected:
  void SetUp() override { Open(); }
  void Open() {
    store_ = nullptr;
    auto store = BundleStore::Open(PosixFileSystem(),
                                   StoreOptions(folder_ / "data", &now_s_));
    ASSERT_TRUE(store.has_value()) << store.error().message;
    store_ = std::move(*store);
  }
  // Walks through all; how much was found damaged, or is.
  size_t Scrub() {
    ScrubWalk walk(*store_);
    size_t found = 0;
    while (true) {
      const auto step = walk.Step();
      if (step && !*step) {
        return found;
      }
      found += step ? 0 : 1;
    }
  }
  bool IsReadable(const Sample& sample) {
    const std::string out = folder_ / "out";
    const Status written = store_->Materialise(sample.list.id(), out);
    const bool same = written && ReadFiles(out) == sample.files;
    EXPECT_EQ(written.has_value(), same) << "other bytes";
    fs::remove_all(out);
    return same;
  }
  std::string PathOf(const Sample& sample, const char* file) {
    for (const FileEntry& entry : sample.list.files()) {
      if (entry.path == file) {
        return store_->chunks().PathOf(entry.chunks[0]);
      }
    }
    return "";
  }
  static void Flip(const std::string& path, uint64_t bit) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(bit / 8));
    const auto byte = static_cast<char>(file.get() ^ (1 << bit % 8));
    file.seekp(static_cast<std::streamoff>(bit / 8));
    file.put(byte);
  }
  // All files of chunks and lists.
  std::vector<std::string> StoredFiles() {
    std::vector<std::string> paths;
    for (const char* folder : {"data/chunks", "data/bundles"}) {
      for (const auto& at :
           fs::recursive_directory_iterator(folder_ / folder)) {
        if (at.is_regular_file()) {
          paths.push_back(at.path());
        }
      }
    }
    std::ranges::sort(paths);
    return paths;
  }

  const TempFolder folder_;
  uint64_t now_s_ = 5000;
  std::unique_ptr<BundleStore> store_;
};

constexpr const char* kShared = "images/c0ffee/libstdc++.so.6";

// One bit of what every bundle shares, in every way that it is found.
TEST_F(RotTest, ADamagedChunkIsSentAgainAndHealsAllThatHoldIt) {
  const Sample first = SmallSample("first", "shared");
  const Sample second = SmallSample("second", "shared");
  const std::string path = PathOf(first, kShared);
  for (const bool restart : {false, true}) {
    ASSERT_TRUE(SendBundle(*store_, first).has_value());
    Flip(path, 3);
    EXPECT_EQ(Scrub(), 1u);
    EXPECT_THAT(store_->DamagedBundles(), Contains(first.list.id()));
    if (restart) {
      Open();
      EXPECT_EQ(store_->Health().damaged_chunks, 1u);
      EXPECT_TRUE(store_->IsDamaged(first.list.id()));
      EXPECT_FALSE(store_->IsWhole(first.list.id()));
    }
    EXPECT_THAT(store_->List(), SizeIs(1)) << "damaged, not forgotten";
    const auto out = store_->Materialise(first.list.id(), folder_ / "out");
    ASSERT_FALSE(out.has_value());
    EXPECT_EQ(out.error().code, ErrorCode::kCorruptInput);
    EXPECT_THAT(out.error().message, HasSubstr("heals it"));
    ASSERT_TRUE(SendBundle(*store_, second).has_value());
    EXPECT_TRUE(IsReadable(first));
    EXPECT_TRUE(IsReadable(second));
    EXPECT_THAT(store_->DamagedBundles(), IsEmpty());
    EXPECT_EQ(store_->Health().damaged_chunks, 0u);
    EXPECT_TRUE(store_->Check().faults.empty());
    Open();
    EXPECT_TRUE(IsReadable(first));
    ASSERT_TRUE(store_->Remove(second.list.id()).has_value());
    ASSERT_TRUE(store_->Remove(first.list.id()).has_value());
    EXPECT_EQ(store_->used_bytes(), 0u);
    EXPECT_THAT(StoredFiles(), IsEmpty());
    EXPECT_TRUE(fs::is_empty(folder_ / "data/damaged"));
  }
}

TEST_F(RotTest, ALostCutOrEmptyChunkIsDamagedAlsoAfterARestart) {
  const Sample sample = SmallSample("own", "shared");
  const std::string path = PathOf(sample, kShared);
  for (const int size_bytes : {-1, 0, 3, 40}) {
    SCOPED_TRACE(size_bytes);
    ASSERT_TRUE(SendBundle(*store_, sample).has_value());
    fs::remove(path);
    if (size_bytes >= 0) {
      WriteFiles("/", {{path, std::string(size_t(size_bytes), 'x')}});
    }
    Open();
    EXPECT_THAT(store_->List(), SizeIs(1));
    EXPECT_THAT(store_->Damaged(), IsEmpty()) << "the list is whole";
    EXPECT_TRUE(store_->IsDamaged(sample.list.id()));
    EXPECT_THAT(store_->chunks().Missing(sample.list.Chunks()), SizeIs(1));
    ASSERT_TRUE(SendBundle(*store_, sample).has_value());
    EXPECT_TRUE(IsReadable(sample));
    Open();
    EXPECT_TRUE(IsReadable(sample));
    EXPECT_TRUE(store_->Check().faults.empty());
  }
}

// /proc/self/mem cannot be read at its start: EIO.
TEST_F(RotTest, AReadErrorEndsNothingAndIsHealed) {
  const Sample sample = SmallSample("own", "shared");
  const std::string path = PathOf(sample, kShared);
  ASSERT_TRUE(SendBundle(*store_, sample).has_value());
  fs::remove(path);
  fs::create_symlink("/proc/self/mem", path);
  const auto out = store_->Materialise(sample.list.id(), folder_ / "out");
  ASSERT_FALSE(out.has_value());
  EXPECT_EQ(out.error().code, ErrorCode::kCorruptInput)
      << "of the moment would be tried again for ever";
  EXPECT_THAT(out.error().message, HasSubstr("Input/output error"));
  EXPECT_TRUE(store_->IsDamaged(sample.list.id()));
  ASSERT_TRUE(SendBundle(*store_, sample).has_value());
  EXPECT_TRUE(IsReadable(sample));
}

TEST_F(RotTest, WhatTheDiskCouldNotReadForAWhileIsPutBack) {
  const Sample sample = SmallSample("own", "shared");
  const std::string path = PathOf(sample, kShared);
  ASSERT_TRUE(SendBundle(*store_, sample).has_value());
  Flip(path, 0);
  EXPECT_EQ(Scrub(), 1u);
  EXPECT_EQ(Scrub(), 1u) << "still";
  Flip(folder_ / "data/damaged/" + fs::path(path).filename().string(), 0);
  EXPECT_EQ(Scrub(), 0u);
  EXPECT_TRUE(IsReadable(sample));
  EXPECT_EQ(store_->Health().damaged_chunks, 0u);
}

TEST_F(RotTest, AListThatRotsWhileTheStoreIsOpenIsSentAgain) {
  const Sample sample = SmallSample("own", "shared");
  ASSERT_TRUE(SendBundle(*store_, sample).has_value());
  const std::string path =
      folder_ / "data/bundles/" + sample.list.id().hex() + ".pb";
  for (const bool scrub : {true, false}) {
    Flip(path, 100);
    if (scrub) {
      EXPECT_EQ(Scrub(), 1u);
      EXPECT_EQ(store_->Health().damaged_bundles, 1u);
    }
    EXPECT_FALSE(store_->IsWhole(sample.list.id())) << "what Begin asks";
    EXPECT_TRUE(store_->IsDamaged(sample.list.id()));
    ASSERT_TRUE(SendBundle(*store_, sample).has_value());
    EXPECT_TRUE(IsReadable(sample));
    EXPECT_FALSE(store_->IsDamaged(sample.list.id()));
  }
}

// A client's wrong size for a chunk of others damages nothing.
TEST_F(RotTest, AStrangersListDamagesNothing) {
  const Sample sample = SmallSample("own", "shared");
  ASSERT_TRUE(SendBundle(*store_, sample).has_value());
  std::vector<ChunkRef> lie = {sample.list.Chunks()[0]};
  lie[0].size_bytes += 1;
  EXPECT_FALSE(store_->chunks().Hold(lie).has_value());
  EXPECT_FALSE(store_->chunks().Read(lie[0]).has_value());
  EXPECT_FALSE(store_->IsDamaged(sample.list.id()));
}

// 200 single bits of a store of 100 bundles of 10 services; then each service
// fails once more.
TEST_F(RotTest, TwoHundredFlippedBitsAreFoundNamedAndHealed) {
  constexpr int kServices = 10;
  constexpr int kBundles = 100;
  constexpr int kFlips = 200;
  std::mt19937_64 random(20261123);
  const auto image = [](int service) {
    return fmt::format("code of {} ", service) + std::string(3000, 'i');
  };
  std::vector<Sample> sent;
  for (int i = 0; i < kBundles; ++i) {
    sent.push_back(
        SmallSample(fmt::format("trace {}", i), image(i % kServices)));
    ASSERT_TRUE(SendBundle(*store_, sent.back()).has_value());
  }
  const Files sound = ReadFiles(folder_ / "data");
  const std::vector<std::string> paths = StoredFiles();
  for (int i = 0; i < kFlips; ++i) {
    const std::string& path = paths[random() % paths.size()];
    Flip(path, random() % (8 * fs::file_size(path)));
  }
  std::set<std::string> rotten;  // below data/; two flips may undo each other
  for (const auto& [name, bytes] : ReadFiles(folder_ / "data")) {
    if (bytes != sound.at(name)) {
      rotten.insert(name);
    }
  }
  ASSERT_GT(rotten.size(), 50u);
  std::set<BundleId> damaged;
  for (const Sample& sample : sent) {
    const BundleId& id = sample.list.id();
    bool hit = rotten.contains("bundles/" + id.hex() + ".pb");
    for (const ChunkRef& chunk : sample.list.Chunks()) {
      const std::string name = chunk.id.hex();
      hit |= rotten.contains("chunks/" + name.substr(0, 2) + "/" + name);
    }
    if (hit) {
      damaged.insert(id);
    }
  }

  EXPECT_EQ(Scrub(), rotten.size());
  const auto named = store_->DamagedBundles();
  EXPECT_EQ(std::set<BundleId>(named.begin(), named.end()), damaged);
  fmt::print("{} of {} files have flipped bits, {} of {} bundles are damaged\n",
             rotten.size(), paths.size(), damaged.size(), kBundles);

  for (int service = 0; service < kServices; ++service) {
    const Sample again =
        SmallSample(fmt::format("new {}", service), image(service));
    ASSERT_TRUE(SendBundle(*store_, again).has_value());
    EXPECT_TRUE(IsReadable(again)) << service;
  }
  for (const Sample& sample : sent) {
    EXPECT_EQ(IsReadable(sample), !store_->IsDamaged(sample.list.id()));
  }
  // What is damaged still is so by what it alone has.
  for (const Sample& sample : sent) {
    ASSERT_TRUE(SendBundle(*store_, sample).has_value());
    EXPECT_TRUE(IsReadable(sample));
  }
  EXPECT_THAT(store_->DamagedBundles(), IsEmpty());
  Open();
  EXPECT_THAT(store_->DamagedBundles(), IsEmpty());
  EXPECT_TRUE(store_->Check().faults.empty());
  EXPECT_EQ(store_->Check().bundles, size_t{kBundles + kServices});
}

}  // namespace
}  // namespace clew::collector
