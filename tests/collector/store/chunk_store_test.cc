// Goal: a chunk is there exactly when all its bytes came and their digest is
// its name; parts may be cut and repeated; the budget and the clock decide as
// the header says; writers of one chunk do not disturb each other.
// Method: hand-picked histories, every cut of a chunk in two parts, and the
// k-th file operation failing for every k.
#include "collector/store/chunk_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "tests/collector/samples.h"
#include "tests/support/power_cut_files.h"

namespace clew::collector {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

const std::string kText = "sixteen bytes!!!";

ChunkRef RefOf(const std::string& text) {
  return {.id = ChunkId(transfer::Sha256Of(Bytes(text))),
          .size_bytes = text.size()};
}

class ChunkStoreTest : public testing::Test {
 protected:
  std::unique_ptr<ChunkStore> Open() {
    auto store = ChunkStore::Open(
        files_, budget_,
        {.folder = folder_.path(), .now_s = [this] { return now_s_; }});
    EXPECT_TRUE(store.has_value());
    return std::move(*store);
  }
  Status Send(ChunkStore& store, const std::string& text) {
    CLEW_ASSIGN_OR_RETURN(upload, store.Begin(RefOf(text)));
    CLEW_RETURN_IF_ERROR(upload.Put(0, Bytes(text)));
    return upload.Finish();
  }
  bool Has(ChunkStore& store, const std::string& text) {
    const ChunkRef chunk = RefOf(text);
    return store.Missing(std::span(&chunk, 1)).empty();
  }
  size_t FilesBelow(const std::string& name) {
    return ReadFiles(folder_ / name).size();
  }

  const TempFolder folder_;
  PowerCutFiles files_{folder_.path()};
  DiskBudget budget_{100};
  uint64_t now_s_ = 5000;
};

TEST_F(ChunkStoreTest, PartsMayBeCutAndRepeatedAnywhere) {
  const ChunkRef chunk = RefOf(kText);
  for (size_t cut = 0; cut <= kText.size(); ++cut) {
    for (size_t from = 0; from <= cut; ++from) {
      auto store = Open();
      auto upload = store->Begin(chunk);
      ASSERT_TRUE(upload.has_value());
      ASSERT_TRUE(upload->Put(0, Bytes(kText).first(cut)).has_value());
      ASSERT_EQ(upload->received_bytes(), cut);
      if (cut < kText.size()) {
        EXPECT_FALSE(upload->Finish().has_value()) << "bytes are missing";
        EXPECT_FALSE(upload->Put(cut + 1, {}).has_value()) << "a hole";
      }
      EXPECT_FALSE(upload->Put(from, Bytes(kText)).has_value() && from > 0)
          << "beyond the end";
      ASSERT_TRUE(upload->Put(from, Bytes(kText).subspan(from)).has_value());
      ASSERT_TRUE(upload->Finish().has_value()) << cut << " " << from;
      const auto bytes = store->Read(chunk);
      ASSERT_TRUE(bytes.has_value());
      EXPECT_TRUE(std::ranges::equal(*bytes, Bytes(kText)));
      ASSERT_TRUE(store->Drop(std::span(&chunk, 1)).has_value());
      EXPECT_EQ(budget_.used_bytes(), 0u);
    }
  }
}

TEST_F(ChunkStoreTest, AWrongDigestIsRefusedAndLeavesNothing) {
  auto store = Open();
  {
    auto upload = store->Begin(RefOf(kText));
    ASSERT_TRUE(upload->Put(0, Bytes("sixteen bytes!!?")).has_value());
    const Status finished = upload->Finish();
    ASSERT_FALSE(finished.has_value());
    EXPECT_EQ(finished.error().code, ErrorCode::kCorruptInput);
    EXPECT_THAT(finished.error().message, HasSubstr("send it again"));
    EXPECT_EQ(FilesBelow("incoming"), 0u);
    EXPECT_FALSE(Has(*store, kText));
    // The same upload goes on from its start.
    EXPECT_EQ(upload->received_bytes(), 0u);
    ASSERT_TRUE(upload->Put(0, Bytes(kText)).has_value());
    ASSERT_TRUE(upload->Finish().has_value());
  }
  EXPECT_TRUE(Has(*store, kText));
  EXPECT_EQ(budget_.used_bytes(), kText.size());
  EXPECT_EQ(FilesBelow("incoming"), 0u);
}

TEST_F(ChunkStoreTest, AnUploadGivenUpLeavesNothing) {
  auto store = Open();
  {
    auto upload = store->Begin(RefOf(kText));
    ASSERT_TRUE(upload->Put(0, Bytes(kText).first(3)).has_value());
    EXPECT_EQ(FilesBelow("incoming"), 1u);
    EXPECT_EQ(budget_.used_bytes(), kText.size());
    const ChunkUpload moved = std::move(*upload);
    EXPECT_EQ(moved.received_bytes(), 3u);
  }
  EXPECT_EQ(FilesBelow("incoming"), 0u);
  EXPECT_EQ(budget_.used_bytes(), 0u);
}

TEST_F(ChunkStoreTest, TheBudgetIsCountedBeforeAByteIsWritten) {
  auto store = Open();
  const std::string rest(100 - kText.size(), 'r');
  ASSERT_TRUE(Send(*store, kText).has_value());
  const int operations = files_.operations();
  const auto refused = store->Begin(RefOf(rest + "!"));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kLimit);
  EXPECT_THAT(refused.error().message,
              HasSubstr("needs 85 bytes, and 16 of the store's 100 bytes"));
  EXPECT_EQ(files_.operations(), operations);
  ASSERT_TRUE(Send(*store, rest).has_value()) << "to the last byte";
  store = nullptr;
  EXPECT_EQ(budget_.used_bytes(), 100u);
}

TEST_F(ChunkStoreTest, ASizeThatNoChunkHasIsRefused) {
  auto store = Open();
  ChunkRef chunk = RefOf(kText);
  for (const uint64_t size : {uint64_t{0}, kChunkBytes + 1, UINT64_MAX}) {
    chunk.size_bytes = size;
    EXPECT_FALSE(store->Begin(chunk).has_value()) << size;
  }
}

TEST_F(ChunkStoreTest, WhatNobodyHoldsOrAskedForGoesAfterADay) {
  auto store = Open();
  for (const std::string text : {"held", "asked", "left"}) {
    ASSERT_TRUE(Send(*store, text).has_value());
  }
  const ChunkRef held = RefOf("held");
  ASSERT_TRUE(store->Hold(std::span(&held, 1)).has_value());
  now_s_ += ChunkStore::kKeepDay_s - 1;
  EXPECT_EQ(store->Expire(), 0u);
  ASSERT_TRUE(Has(*store, "asked"));
  now_s_ += 1;
  EXPECT_EQ(store->Expire(), 1u);
  EXPECT_FALSE(Has(*store, "left"));
  EXPECT_EQ(FilesBelow("chunks"), 2u);
  EXPECT_EQ(budget_.used_bytes(), 9u);
  store->Release(std::span(&held, 1));
  now_s_ += ChunkStore::kKeepDay_s;
  EXPECT_EQ(store->Expire(), 2u);
  EXPECT_EQ(FilesBelow("chunks"), 0u);
  EXPECT_EQ(budget_.used_bytes(), 0u);
}

TEST_F(ChunkStoreTest, HoldIsAllOrNothing) {
  auto store = Open();
  ASSERT_TRUE(Send(*store, "a").has_value());
  const std::vector<ChunkRef> both = {RefOf("a"), RefOf("b")};
  const Status missing = store->Hold(both);
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(missing.error().message, HasSubstr("1 of 2 chunks are missing"));
  EXPECT_THAT(store->Unheld(), ElementsAre(RefOf("a")));
  ChunkRef other_size = RefOf("a");
  other_size.size_bytes = 2;
  EXPECT_EQ(store->Hold(std::span(&other_size, 1)).error().code,
            ErrorCode::kCorruptInput);
}

TEST_F(ChunkStoreTest, ADamagedChunkIsNotRead) {
  auto store = Open();
  ASSERT_TRUE(Send(*store, kText).has_value());
  for (const std::string damage : {"sixteen bytes!!?", "short", ""}) {
    fs::remove(store->PathOf(RefOf(kText).id));
    WriteFiles("/", {{store->PathOf(RefOf(kText).id), damage}});
    const auto bytes = store->Read(RefOf(kText));
    ASSERT_FALSE(bytes.has_value());
    EXPECT_EQ(bytes.error().code, ErrorCode::kCorruptInput);
  }
}

TEST_F(ChunkStoreTest, OpenFindsChunksAndNamesStrangers) {
  ASSERT_TRUE(Send(*Open(), kText).has_value());
  const std::string name = RefOf("x").id.hex();
  WriteFiles(folder_.path(), {{"incoming/7", "half"},
                              {"chunks/zz/readme", "?"},
                              {"chunks/no-shard", "?"},
                              {"chunks/00/" + name, "wrong shard"}});
  budget_.Return(budget_.used_bytes());
  auto store = Open();
  EXPECT_TRUE(Has(*store, kText));
  EXPECT_EQ(budget_.used_bytes(), kText.size());
  EXPECT_EQ(store->strangers().size(), 3u);
  EXPECT_EQ(FilesBelow("incoming"), 0u);
}

// Whatever fails, the chunk is whole or absent, its bytes counted once, and a
// second attempt on a healthy disk works.
TEST_F(ChunkStoreTest, EveryFailingOperationLeavesAllOrNothing) {
  auto store = Open();
  bool finished = false;
  int works = 0;
  for (; !finished; ++works) {
    ASSERT_LT(works, 100) << "the upload never ends";
    const std::string text = fmt::format("chunk {:03}", works);
    files_.FailAfter(works);
    finished = Send(*store, text).has_value();
    EXPECT_EQ(Has(*store, text), finished) << works;
    files_.Heal();
    ASSERT_TRUE(Send(*store, text).has_value()) << works;
    const ChunkRef chunk = RefOf(text);
    ASSERT_TRUE(store->Read(chunk).has_value());
    ASSERT_TRUE(store->Drop(std::span(&chunk, 1)).has_value());
    budget_.Return(budget_.used_bytes());  // what could not be removed
  }
  EXPECT_GT(works, 4);
}

TEST_F(ChunkStoreTest, WritersOfOneChunkAllSucceedAndStoreItOnce) {
  constexpr int kWriters = 4;
  auto store = Open();
  for (int round = 0; round < 20; ++round) {
    const std::string text = fmt::format("round {}", round);
    std::vector<std::thread> writers;
    for (int i = 0; i < kWriters; ++i) {
      writers.emplace_back(
          [&] { EXPECT_TRUE(Send(*store, text).has_value()); });
    }
    for (std::thread& writer : writers) {
      writer.join();
    }
    EXPECT_EQ(budget_.used_bytes(), text.size());
    EXPECT_EQ(FilesBelow("chunks"), 1u);
    EXPECT_EQ(FilesBelow("incoming"), 0u);
    const ChunkRef chunk = RefOf(text);
    ASSERT_TRUE(store->Drop(std::span(&chunk, 1)).has_value());
  }
}

}  // namespace
}  // namespace clew::collector
