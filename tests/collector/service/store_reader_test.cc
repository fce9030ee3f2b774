// Goal: a catalogue that was opened without reading all of it is read before
// anything may be removed from the store, and damage is said. Method: a page in
// the middle of the file is overwritten.
#include "collector/service/store_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/collector/samples.h"

namespace clew::collector {
namespace {

using testing::HasSubstr;

bool Always() { return true; }

class StoreReaderTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto catalogue = Catalogue::Open(path_);
    ASSERT_TRUE(catalogue) << catalogue.error().message;
    const BundleId id = SmallSample("own", "shared").list.id();
    NewBundle bundle = {.id = id,
                        .host = "web-1",
                        .unit = "",
                        .command = "bank",
                        .source = "qemu",
                        .failure = "hang",
                        .sufficiency = std::nullopt};
    Analysis analysis = AnalysisByKind("hang", "bank");
    analysis.backtraces = kBacktraces;
    ASSERT_TRUE((*catalogue)->Add(bundle));
    ASSERT_TRUE((*catalogue)->SetAnalysis(id, analysis));
  }

  // The head of the page that has the backtraces.
  void Damage() const {
    constexpr size_t kPageBytes = 4096;
    std::string bytes = ReadFiles(folder_.path()).at("catalogue.sqlite");
    const size_t at = bytes.rfind(kBacktraces);
    ASSERT_NE(at, std::string::npos);
    std::fill_n(
        bytes.begin() + static_cast<ptrdiff_t>(at / kPageBytes * kPageBytes),
        64, '\xff');
    WriteFiles(folder_.path(), {{"catalogue.sqlite", bytes}});
  }

  // Opens both without reading them.
  void Open() {
    auto options = StoreOptions(store_folder_.path(), &now_s_);
    options.read_later = true;
    auto store = BundleStore::Open(PosixFileSystem(), options);
    ASSERT_TRUE(store) << store.error().message;
    store_ = std::move(*store);
    auto catalogue = Catalogue::Open(path_, Catalogue::Check::kSchema);
    ASSERT_TRUE(catalogue) << catalogue.error().message;
    catalogue_ = std::move(*catalogue);
  }

  static inline const std::string kBacktraces = std::string(500, ' ');
  const TempFolder folder_;
  const TempFolder store_folder_;
  const std::string path_ = folder_ / "catalogue.sqlite";
  const uint64_t now_s_ = 1;
  std::unique_ptr<BundleStore> store_;
  std::unique_ptr<Catalogue> catalogue_;
};

TEST_F(StoreReaderTest, AWholeCatalogueIsFine) {
  Open();
  EXPECT_TRUE(ReadStore(*store_, *catalogue_, 1, Always));
  EXPECT_TRUE(catalogue_->Health());
  EXPECT_TRUE(store_->CheckRemovable());
}

TEST_F(StoreReaderTest, NothingIsRemovedByADamagedCatalogue) {
  Damage();
  EXPECT_FALSE(Catalogue::Open(path_));
  Open();
  EXPECT_TRUE(catalogue_->Health());
  EXPECT_TRUE(catalogue_->CheckPages([] { return false; }));
  EXPECT_TRUE(catalogue_->Health()) << "it was not read";
  const auto read = ReadStore(*store_, *catalogue_, 1, Always);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kCorruptInput);
  EXPECT_THAT(read.error().message, HasSubstr("stop the collector and remove"));
  EXPECT_FALSE(store_->CheckRemovable());
  EXPECT_FALSE(catalogue_->Health());
  EXPECT_FALSE(ReadStore(*store_, *catalogue_, 1, Always)) << "a second time";
}

}  // namespace
}  // namespace clew::collector
