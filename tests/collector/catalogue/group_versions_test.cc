// Goal: a group knows in which versions of its program it was seen; what an
// engineer says of it stays, and a resolved one opens again only for versions
// that come later. Method: stories on a catalogue, the times given.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collector/catalogue/catalogue.h"
#include "tests/collector/catalogue/catalogue_model.h"
#include "tests/collector/samples.h"

namespace clew::collector {
namespace {

class GroupVersionsTest : public testing::Test {
 protected:
  void SetUp() override { Open(); }
  void Open() {
    catalogue_.reset();
    auto opened = Catalogue::Open(folder_ / "catalogue.sqlite");
    ASSERT_TRUE(opened.has_value()) << opened.error().message;
    catalogue_ = std::move(*opened);
  }
  // A bundle of group 1, recorded and received at `at_s`.
  void Send(const std::string& version, int64_t at_s) {
    NewBundle bundle = BundleOf(++sent_);
    bundle.recorded_at_s = at_s;
    bundle.received_at_s = at_s;
    ASSERT_TRUE(catalogue_->Add(bundle));
    ASSERT_TRUE(catalogue_->SetAnalysis(bundle.id, {.signature = signature_,
                                                    .title = "bank: SIGABRT",
                                                    .backtraces = "{}",
                                                    .program = "bank",
                                                    .version = version}));
  }
  void Resolve(const std::string& version, int64_t at_s) {
    ASSERT_TRUE(catalogue_->Change(
        signature_,
        {.resolved = true, .version = version, .by = "ann", .at_s = at_s}));
  }
  GroupRow Row() {
    const auto row = catalogue_->Group(signature_);
    return row && *row ? **row : GroupRow{};
  }

  const TempFolder folder_;
  std::unique_ptr<Catalogue> catalogue_;
  const std::string signature_ = SignatureOf(1);
  uint64_t sent_ = 0;
};

TEST_F(GroupVersionsTest, TellsTheFirstAndTheLastVersion) {
  Send("aaaa", 100);
  Send("", 150);  // not known
  Send("bbbb", 200);
  Send("aaaa", 300);
  const GroupRow row = Row();
  EXPECT_EQ(row.bundles, 4u);
  EXPECT_EQ(row.program, "bank");
  EXPECT_EQ(row.first_version, "aaaa");
  EXPECT_EQ(row.last_version, "bbbb");
  EXPECT_EQ(row.versions, 2u);
  const auto versions = catalogue_->VersionsOf(signature_, 10);
  ASSERT_TRUE(versions);
  ASSERT_EQ(versions->size(), 2u);
  EXPECT_EQ((*versions)[1].version, "aaaa");
  EXPECT_EQ((*versions)[1].first_seen_s, 100);
  EXPECT_EQ((*versions)[1].last_seen_s, 300);
  EXPECT_EQ(
      catalogue_->Bundles({.filter = {.program = "bank", .version = "bb"}})
          ->total,
      1u);
  EXPECT_EQ(catalogue_->Bundles({.filter = {.since_s = 200}})->total, 2u);
  EXPECT_EQ(catalogue_->Groups({.filter = {.program = "bank"}})->total, 1u);
  EXPECT_EQ(catalogue_->Groups({.filter = {.program = "other"}})->total, 0u);
  const auto days = catalogue_->DaysOf(signature_, 0);
  ASSERT_TRUE(days && days->size() == 1);
  EXPECT_EQ((*days)[0].bundles, 4u);
}

TEST_F(GroupVersionsTest, AResolvedGroupOpensAgainForALaterVersionOnly) {
  Send("aaaa", 100);
  Send("bbbb", 200);
  Resolve("", 300);
  EXPECT_TRUE(Row().mark.resolved);
  Send("aaaa", 400);  // hosts that still run it
  Send("", 410);
  EXPECT_TRUE(Row().mark.resolved);
  EXPECT_EQ(catalogue_->Groups({.resolved = false})->total, 0u);
  Open();  // it is kept
  EXPECT_TRUE(Row().mark.resolved);
  EXPECT_EQ(Row().mark.by, "ann");
  Send("cccc", 500);
  EXPECT_FALSE(Row().mark.resolved);
  EXPECT_EQ(Row().mark.reopened_in, "cccc");
  EXPECT_EQ(catalogue_->Groups({.resolved = false})->total, 1u);
}

TEST_F(GroupVersionsTest, ResolvedInAVersionCountsFromThatOneOn) {
  Send("aaaa", 100);
  Send("bbbb", 200);
  Resolve("bbb", 300);  // its first digits; seen before, and said to be good
  Send("aaaa", 400);
  EXPECT_TRUE(Row().mark.resolved);
  EXPECT_EQ(Row().mark.resolved_in, "bbb");
  Send("bbbb", 299);  // received before that was said
  EXPECT_TRUE(Row().mark.resolved);
  Send("bbbb", 500);
  EXPECT_FALSE(Row().mark.resolved);
}

TEST_F(GroupVersionsTest, NotesOutliveTheBundles) {
  Send("aaaa", 100);
  ASSERT_TRUE(catalogue_->Change(
      signature_, {.note = "see <b>\n#12", .by = "ann", .at_s = 200}));
  Resolve("", 300);
  ASSERT_TRUE(catalogue_->Remove(IdOf(1)));
  EXPECT_EQ(catalogue_->Groups({})->total, 0u);
  Send("bbbb", 400);
  EXPECT_EQ(Row().mark.note, "see <b>\xef\xbf\xbd#12");
  EXPECT_EQ(Row().mark.reopened_in, "bbbb");
  ASSERT_TRUE(catalogue_->Change(signature_, {.resolved = false, .by = "bob"}));
  EXPECT_EQ(Row().mark.by, "bob");
  EXPECT_FALSE(catalogue_->Change(SignatureOf(2), {.resolved = true}));
}

}  // namespace
}  // namespace clew::collector
