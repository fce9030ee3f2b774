// Goal: the scrubber finds what rots while nobody looks, keeps to its rate and
// its period, and goes on where a restart broke it off.
// Method: stores with damage, a clock of the test's own.
#include "collector/upkeep/scrubber.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

#include "tests/collector/samples.h"
#include "tests/support/wait_until.h"

namespace clew::collector {
namespace {

using clew::test::WaitUntil;

class ScrubberTest : public testing::Test {
 protected:
  void SetUp() override {
    auto store = BundleStore::Open(PosixFileSystem(),
                                   StoreOptions(folder_ / "data", &steady_s_));
    ASSERT_TRUE(store.has_value()) << store.error().message;
    store_ = std::move(*store);
    ASSERT_TRUE(SendBundle(*store_, sample_).has_value());
  }
  void Damage() {
    const ChunkRef chunk = sample_.list.Chunks()[1];
    const std::string path = store_->chunks().PathOf(chunk.id);
    std::filesystem::remove(path);
    WriteFiles("/", {{path, std::string(chunk.size_bytes, 'x')}});
  }
  std::unique_ptr<Scrubber> Start(uint64_t bytes_per_s) {
    return Scrubber::Start(PosixFileSystem(),
                           {.path = folder_ / "scrub",
                            .bytes_per_s = bytes_per_s,
                            .period_s = 1000,
                            .now_s =
                                [this] {
                                  ++clock_looks_;
                                  return now_s_.load();
                                },
                            .report = {}},
                           *store_);
  }

  const TempFolder folder_;
  uint64_t steady_s_ = 5000;
  std::atomic<int64_t> now_s_ = 1'700'000'000;
  std::atomic<int> clock_looks_ = 0;  // of scrubbers
  const Sample sample_ = SmallSample("own", "shared");
  std::unique_ptr<BundleStore> store_;
};

constexpr uint64_t kFast = uint64_t{1} << 40;

TEST_F(ScrubberTest, DamageIsFoundAndTheEndIsKnown) {
  Damage();
  EXPECT_EQ(store_->Health().last_scrub_s, 0);
  const auto scrubber = Start(kFast);
  EXPECT_TRUE(
      WaitUntil([&] { return store_->Health().last_scrub_s == now_s_; }));
  EXPECT_EQ(scrubber->counts().found, 1u);
  EXPECT_EQ(store_->Health().damaged_chunks, 1u);
  EXPECT_EQ(store_->Health().damaged_bundles, 1u);
}

TEST_F(ScrubberTest, AWalkBeginsOnceInAPeriodAlsoOverARestart) {
  const int64_t first_s = now_s_;
  Start(kFast)->Stop();
  {
    const auto scrubber = Start(kFast);
    ASSERT_TRUE(
        WaitUntil([&] { return store_->Health().last_scrub_s == first_s; }));
  }
  now_s_ += 999;
  Damage();
  {
    clock_looks_ = 0;
    const auto scrubber = Start(kFast);
    // It asks whether a walk is due; who begins one asks once more.
    EXPECT_TRUE(WaitUntil([&] { return clock_looks_ > 0; }));
    scrubber->Stop();
    EXPECT_EQ(clock_looks_, 1);
    EXPECT_EQ(scrubber->counts().bytes, 0u);
    EXPECT_EQ(store_->Health().last_scrub_s, first_s) << "from the file";
  }
  now_s_ += 1;
  const auto scrubber = Start(kFast);
  EXPECT_TRUE(WaitUntil([&] { return scrubber->counts().found == 1; }));
}

// A Stop that sat the rest out would come back after hours.
TEST_F(ScrubberTest, ARateIsKeptAndAStopDoesNotWait) {
  const auto scrubber = Start(/*bytes_per_s=*/1);  // hours for one chunk
  // It has asked whether a walk is due, and when this one began.
  EXPECT_TRUE(WaitUntil([&] { return clock_looks_ > 1; }));
  // One that keeps no rate would now read chunks.
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  scrubber->Stop();
  EXPECT_LE(scrubber->counts().bytes, sample_.list.Chunks()[0].size_bytes);
  EXPECT_EQ(store_->Health().last_scrub_s, 0);
}

TEST_F(ScrubberTest, AFileThatIsNoneOfOursIsAsNone) {
  for (const char* text : {"", "clew scrub 1", "clew scrub 1\n9 9", "x"}) {
    WriteFiles(folder_.path(), {{"scrub", text}});
    const auto scrubber = Start(kFast);
    EXPECT_TRUE(
        WaitUntil([&] { return store_->Health().last_scrub_s == now_s_; }));
    store_->SetScrubbed(0);
  }
}

}  // namespace
}  // namespace clew::collector
