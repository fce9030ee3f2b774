// Goal: the scrubber finds what rots while nobody looks, keeps to its rate and
// its period, and goes on where a restart broke it off.
// Method: stores with damage, a clock of the test's own.
#include "collector/scrubber.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>

#include "tests/collector/samples.h"

namespace clew::collector {
namespace {

using Clock = std::chrono::steady_clock;

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
                            .now_s = [this] { return now_s_.load(); },
                            .report = {}},
                           *store_);
  }
  // False after ten seconds.
  static bool WaitFor(const std::function<bool()>& condition) {
    const auto end = Clock::now() + std::chrono::seconds(10);
    while (!condition()) {
      if (Clock::now() > end) {
        return false;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return true;
  }

  const TempFolder folder_;
  uint64_t steady_s_ = 5000;
  std::atomic<int64_t> now_s_ = 1'700'000'000;
  const Sample sample_ = SmallSample("own", "shared");
  std::unique_ptr<BundleStore> store_;
};

constexpr uint64_t kFast = uint64_t{1} << 40;

TEST_F(ScrubberTest, DamageIsFoundAndTheEndIsKnown) {
  Damage();
  EXPECT_EQ(store_->Health().last_scrub_s, 0);
  const auto scrubber = Start(kFast);
  EXPECT_TRUE(WaitFor([&] { return store_->Health().last_scrub_s == now_s_; }));
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
        WaitFor([&] { return store_->Health().last_scrub_s == first_s; }));
  }
  now_s_ += 999;
  Damage();
  {
    const auto scrubber = Start(kFast);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_EQ(scrubber->counts().bytes, 0u);
    EXPECT_EQ(store_->Health().last_scrub_s, first_s) << "from the file";
  }
  now_s_ += 1;
  const auto scrubber = Start(kFast);
  EXPECT_TRUE(WaitFor([&] { return scrubber->counts().found == 1; }));
}

TEST_F(ScrubberTest, ARateIsKeptAndAStopDoesNotWait) {
  const auto begin = Clock::now();
  {
    const auto scrubber = Start(/*bytes_per_s=*/1);  // hours for one chunk
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_LE(scrubber->counts().bytes, sample_.list.Chunks()[0].size_bytes);
    EXPECT_EQ(store_->Health().last_scrub_s, 0);
  }
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(5));
}

TEST_F(ScrubberTest, AFileThatIsNoneOfOursIsAsNone) {
  for (const char* text : {"", "clew scrub 1", "clew scrub 1\n9 9", "x"}) {
    WriteFiles(folder_.path(), {{"scrub", text}});
    const auto scrubber = Start(kFast);
    EXPECT_TRUE(
        WaitFor([&] { return store_->Health().last_scrub_s == now_s_; }));
    store_->SetScrubbed(0);
  }
}

}  // namespace
}  // namespace clew::collector
