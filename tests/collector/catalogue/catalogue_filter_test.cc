// Goal: a list of groups or bundles has exactly what its filter asks for, all
// of it combined, on whichever page. Method: random bundles with few values,
// random filters; oracle: every bundle is looked at, one by one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "collector/catalogue/catalogue.h"
#include "common/check.h"
#include "common/digest.h"
#include "tests/collector/catalogue/catalogue_model.h"
#include "tests/collector/samples.h"

namespace clew::collector {
namespace {

const std::vector<std::string> kVersions = {"1.4", "1.4.2", "5c0fc84b",
                                            "5c0f0000", "1.4~rc1%"};
const std::vector<std::string> kFailures = {
    "signal 6 (SIGABRT)", "signal 11 (SIGSEGV)", "hang", "exit status 6"};

bool Is(const std::string& wanted, const std::string& found) {
  return wanted.empty() || wanted == found;
}

bool IsVersion(const std::string& wanted, const std::string& found) {
  const bool digits =
      found.find_first_not_of("0123456789abcdef") == std::string::npos;
  return Is(wanted, found) || (digits && found.starts_with(wanted));
}

bool IsFailure(const std::string& wanted, const std::string& found) {
  return Is(wanted, found) || found.starts_with(wanted + " (") ||
         found.ends_with(" (" + wanted + ")");
}

bool Matches(const BundleFilter& filter, const BundleRow& row) {
  return Is(filter.host, row.host) && Is(filter.program, row.program) &&
         IsVersion(filter.version, row.version) &&
         (Is(filter.unit, row.unit) || filter.unit + ".service" == row.unit) &&
         IsFailure(filter.failure, row.failure) &&
         row.received_at_s >= filter.since_s &&
         (filter.until_s == 0 || row.received_at_s < filter.until_s);
}

class CatalogueFilterTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = Catalogue::Open(folder_ / "catalogue.sqlite");
    ASSERT_TRUE(opened) << opened.error().message;
    catalogue_ = std::move(*opened);
  }

  std::string Name(const char* what) {
    return fmt::format("{}-{}", what, random_.Below(3));
  }
  const std::string& OneOf(const std::vector<std::string>& of) {
    return of[random_.Below(of.size())];
  }

  void Add(uint64_t number) {
    NewBundle bundle = BundleOf(number);
    bundle.host = Name("host");
    bundle.unit = Name("unit") + ".service";
    bundle.failure = OneOf(kFailures);
    bundle.received_at_s = 1000 + static_cast<int64_t>(random_.Below(100));
    const Analysis analysis = {.signature = SignatureOf(random_.Below(40)),
                               .title = Name("title"),
                               .backtraces = "{}",
                               .program = Name("program"),
                               .version = OneOf(kVersions)};
    ASSERT_TRUE(catalogue_->Add(bundle));
    ASSERT_TRUE(catalogue_->SetAnalysis(bundle.id, analysis));
  }

  // Each part is in it with one chance in three.
  BundleFilter AnyFilter() {
    const auto in = [&] { return random_.Below(3) == 0; };
    BundleFilter filter;
    filter.host = in() ? Name("host") : "";
    filter.program = in() ? Name("program") : "";
    filter.version = in() ? OneOf({"1.4", "5c0f", "5c0fc84b", "1.", "%"}) : "";
    filter.unit = in() ? Name("unit") + (in() ? ".service" : "") : "";
    filter.failure =
        in() ? OneOf({"SIGABRT", "signal 6", "signal 1", "hang", "6", "_"})
             : "";
    filter.since_s = in() ? 1000 + static_cast<int64_t>(random_.Below(100)) : 0;
    filter.until_s = in() ? 1000 + static_cast<int64_t>(random_.Below(100)) : 0;
    return filter;
  }

  std::set<std::string> GroupsByHand(const BundleFilter& filter) const {
    std::set<std::string> signatures;
    const auto all = catalogue_->Bundles({.limit = kPageRowsMax});
    for (const BundleRow& row : all->rows) {
      if (Matches(filter, row)) {
        signatures.insert(row.signature);
      }
    }
    return signatures;
  }

  // Page after page; each one says how many there are.
  std::set<std::string> GroupsFound(GroupQuery query, uint64_t total) const {
    std::set<std::string> signatures;
    query.limit = 7;
    for (;; query.offset += query.limit) {
      const auto page = catalogue_->Groups(query);
      EXPECT_TRUE(page) << page.error().message;
      EXPECT_EQ(page->total, total);
      for (const GroupRow& row : page->rows) {
        EXPECT_TRUE(signatures.insert(row.signature).second) << "twice";
      }
      if (page->rows.empty()) {
        return signatures;
      }
    }
  }

  const TempFolder folder_;
  Random random_{11};
  std::unique_ptr<Catalogue> catalogue_;
};

TEST_F(CatalogueFilterTest, ListsHaveWhatTheFilterAsksFor) {
  constexpr uint64_t kBundles = 300;
  for (uint64_t i = 0; i < kBundles; ++i) {
    Add(i);
  }
  size_t some = 0;
  for (int i = 0; i < 300; ++i) {
    const BundleFilter filter = AnyFilter();
    const auto all = catalogue_->Bundles({.limit = kPageRowsMax});
    const auto found =
        catalogue_->Bundles({.limit = kPageRowsMax, .filter = filter});
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_EQ(found->total, static_cast<uint64_t>(std::ranges::count_if(
                                all->rows, [&](const BundleRow& row) {
                                  return Matches(filter, row);
                                })));
    const auto wanted = GroupsByHand(filter);
    EXPECT_EQ(GroupsFound({.filter = filter}, wanted.size()), wanted);
    some += !wanted.empty() && wanted.size() < 40 ? 1 : 0;
  }
  EXPECT_GT(some, 100u) << "filters that choose";
}

TEST_F(CatalogueFilterTest, StateStatusTextAndFilterCombine) {
  for (uint64_t i = 0; i < 3; ++i) {
    NewBundle bundle = BundleOf(i);
    bundle.host = fmt::format("host-{}", i);
    ASSERT_TRUE(catalogue_->Add(bundle));
    ASSERT_TRUE(catalogue_->SetAnalysis(
        bundle.id, {.signature = SignatureOf(i),
                    .title = fmt::format("title {}", i % 2),
                    .backtraces = "{}",
                    .program = "bank"}));
  }
  ASSERT_TRUE(
      catalogue_->SetSolved(BundleOf(0).id, {.state = BundleState::kWitness}));
  ASSERT_TRUE(catalogue_->Change(SignatureOf(2), {.resolved = true}));
  const auto total = [&](const GroupQuery& query) {
    return catalogue_->Groups(query)->total;
  };
  EXPECT_EQ(total({.text = "title 0"}), 2u);
  EXPECT_EQ(total({.text = "title 0", .state = BundleState::kWitness}), 1u);
  EXPECT_EQ(total({.text = "title 0", .resolved = true}), 1u);
  EXPECT_EQ(total({.text = "host-2", .resolved = true}), 1u);
  EXPECT_EQ(total({.resolved = true, .state = BundleState::kWitness}), 0u);
  EXPECT_EQ(total({.resolved = false, .filter = {.program = "bank"}}), 2u);
  EXPECT_EQ(total({.reopened = true}), 0u);
  EXPECT_EQ(total({.text = "title 0",
                   .state = BundleState::kWitness,
                   .filter = {.host = "host-0", .program = "bank"}}),
            1u);
  EXPECT_EQ(catalogue_->Counts()->groups_by_state,
            (std::vector<uint64_t>{2, 0, 0, 1, 0, 0, 0}));
}

// "1.4" does not match "1.4.2", which is another release.
TEST_F(CatalogueFilterTest, ResolvedInAReleaseIsNotResolvedInOneThatBeginsSo) {
  const auto send = [&](uint64_t number, const char* version) {
    NewBundle bundle = BundleOf(number);
    bundle.received_at_s = static_cast<int64_t>(number);
    ASSERT_TRUE(catalogue_->Add(bundle));
    ASSERT_TRUE(catalogue_->SetAnalysis(bundle.id, {.signature = SignatureOf(1),
                                                    .title = "t",
                                                    .backtraces = "{}",
                                                    .program = "bank",
                                                    .version = version}));
  };
  send(1, "1.4.2");
  send(2, "1.5");
  ASSERT_TRUE(catalogue_->Change(
      SignatureOf(1), {.resolved = true, .version = "1.4", .at_s = 3}));
  send(4, "1.4.2");
  EXPECT_TRUE((*catalogue_->Group(SignatureOf(1)))->mark.resolved);
  EXPECT_EQ(catalogue_->Groups({.reopened = true})->total, 0u);
  send(5, "1.4");
  EXPECT_FALSE((*catalogue_->Group(SignatureOf(1)))->mark.resolved);
  EXPECT_EQ(catalogue_->Groups({.reopened = true})->total, 1u);
}

}  // namespace
}  // namespace clew::collector
