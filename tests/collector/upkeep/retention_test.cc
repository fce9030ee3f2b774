// Goal: what is removed is what the header says, in its order, and nothing
// else; a disk that fails or a kill in between loses no bundle from sight.
// Method: collections with a clock of the test's own; random ones against the
// rules, said once more; every operation of the disk failing.
#include "collector/upkeep/retention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "common/check.h"
#include "common/digest.h"
#include "common/units.h"
#include "tests/collector/catalogue/catalogue_model.h"
#include "tests/collector/samples.h"
#include "tests/support/must.h"
#include "tests/support/power_cut_files.h"

namespace clew::collector {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr size_t kBundleBytes = 1000;  // of each, beside what all share

using test::Must;

// A collector's folder. Bundle n was received on day n.
class Collection {
 public:
  Collection()
      : files(folder_.path()),
        catalogue(Must(Catalogue::Open(folder_ / "catalogue.sqlite"))) {
    Reopen();
  }
  // As a restart finds them.
  void Reopen() {
    store.reset();
    store =
        Must(BundleStore::Open(files, StoreOptions(folder_.path(), &now_s_)));
    schedules = Must(ScheduleStore::Open(files, folder_ / "schedules"));
  }

  // In group 0 it is not analysed.
  BundleId Add(int day, uint64_t group, BundleState state) {
    std::string text = fmt::format("bundle {} ", day);
    text.resize(kBundleBytes, '.');
    const Sample sample = SmallSample(text, "shared by all");
    CLEW_CHECK(SendBundle(*store, sample).has_value(), "not stored");
    NewBundle bundle = BundleOf(0);
    bundle.id = sample.list.id();
    bundle.received_at_s = day * kDay_s;
    CLEW_CHECK(catalogue->Add(bundle).has_value(), "not added");
    if (group != 0) {
      const Analysis analysis = {.signature = SignatureOf(group),
                                 .title = "SIGSEGV",
                                 .backtraces = ""};
      CLEW_CHECK(catalogue->SetAnalysis(bundle.id, analysis).has_value(), "-");
      CLEW_CHECK(catalogue->SetSolved(bundle.id, {.state = state}).has_value(),
                 "-");
    }
    if (state == BundleState::kWitness) {
      CLEW_CHECK(schedules->Put(bundle.id, Bytes("schedule")).has_value(), "-");
    }
    days_.emplace(bundle.id, day);
    return bundle.id;
  }

  Result<RetentionReport> Apply(const RetentionOptions& options, int day) {
    return ApplyRetention(options, *store, *catalogue, *schedules,
                          day * kDay_s);
  }
  // Removes one bundle, since each needs some bytes of its own.
  void MakeRoom() {
    const uint64_t used_bytes = store->used_bytes() + schedules->used_bytes();
    const auto applied = Apply({.bytes_limit = used_bytes - 1}, 0);
    CLEW_CHECK(applied.has_value(), "{}", applied.error().message);
    EXPECT_EQ(applied->too_much, 1u);
  }

  // Days of what is there, in catalogue and store alike, ascending.
  std::vector<int> Days() const {
    std::set<BundleId> stored;
    for (const StoredBundle& bundle : store->List()) {
      stored.insert(bundle.id);
    }
    std::vector<int> days;
    std::set<BundleId> listed;
    for (const BundleRow& row :
         Must(catalogue->Bundles({.limit = kPageRowsMax})).rows) {
      listed.insert(row.id);
      days.push_back(days_.at(row.id));
    }
    EXPECT_TRUE(listed == stored) << "catalogue and store differ";
    for (const BundleId& id : schedules->List()) {
      EXPECT_TRUE(stored.contains(id)) << "a schedule of nothing";
    }
    std::ranges::sort(days);
    return days;
  }

 private:
  TempFolder folder_;
  uint64_t now_s_ = 0;
  std::map<BundleId, int> days_;

 public:
  PowerCutFiles files;
  std::unique_ptr<BundleStore> store;
  std::unique_ptr<Catalogue> catalogue;
  std::unique_ptr<ScheduleStore> schedules;
};

constexpr auto kStored = BundleState::kStored;
constexpr auto kUnsolved = BundleState::kUnsolved;
constexpr auto kWitness = BundleState::kWitness;

TEST(RetentionTest, WithoutLimitsNothingIsRemoved) {
  Collection collection;
  collection.Add(1, 1, kWitness);
  collection.Add(2, 0, kStored);
  const auto report = Must(collection.Apply({}, 1'000'000));
  EXPECT_EQ(report.too_old + report.too_much + report.schedules, 0u);
  EXPECT_THAT(collection.Days(), ElementsAre(1, 2));
}

TEST(RetentionTest, OldBundlesGoAndARepresentativeGoesWithTheLastOfItsGroup) {
  Collection collection;
  collection.Add(1, 1, kWitness);
  collection.Add(2, 1, kStored);
  collection.Add(3, 2, kWitness);
  collection.Add(4, 0, kStored);
  collection.Add(8, 1, kStored);
  const RetentionOptions options = {.age_limit_s = 5 * kDay_s};
  // Exactly as old as allowed.
  EXPECT_EQ(Must(collection.Apply(options, 6)).too_old, 0u);
  EXPECT_THAT(collection.Days(), ElementsAre(1, 2, 3, 4, 8));
  EXPECT_EQ(Must(collection.Apply(options, 10)).too_old, 3u);
  EXPECT_THAT(collection.Days(), ElementsAre(1, 8));
  EXPECT_EQ(Must(collection.Apply(options, 20)).too_old, 2u);
  EXPECT_THAT(collection.Days(), IsEmpty());
  EXPECT_EQ(collection.store->used_bytes(), 0u);
}

TEST(RetentionTest, ForRoomWitnessesGoLast) {
  Collection collection;
  collection.Add(1, 1, kWitness);
  collection.Add(2, 1, kStored);
  collection.Add(3, 2, kUnsolved);
  collection.Add(4, 0, kStored);
  collection.Add(5, 2, kStored);
  collection.Add(6, 3, kWitness);
  collection.Add(7, 1, kStored);
  const std::vector<int> order = {2, 5, 7, 3, 4, 1, 6};
  std::vector<int> left = collection.Days();
  for (const int next : order) {
    std::erase(left, next);
    collection.MakeRoom();
    EXPECT_EQ(collection.Days(), left) << "next was " << next;
  }
}

TEST(RetentionTest, WhatIsAtWorkStays) {
  Collection collection;
  collection.Add(1, 1, kStored);
  collection.Add(2, 0, kStored);
  ASSERT_TRUE(Must(collection.catalogue->TakeForSolving()));
  ASSERT_TRUE(Must(collection.catalogue->TakeForAnalysis()));
  ASSERT_TRUE(collection.Apply({.age_limit_s = 1, .bytes_limit = 1}, 100));
  EXPECT_THAT(collection.Days(), ElementsAre(1, 2));
  ASSERT_TRUE(collection.catalogue->ReturnTaken());
  ASSERT_TRUE(collection.Apply({.age_limit_s = 1, .bytes_limit = 1}, 100));
  EXPECT_THAT(collection.Days(), IsEmpty());
}

// They are somebody's upload, and no reason to remove bundles.
TEST(RetentionTest, ChunksOfUnfinishedUploadsDoNotCount) {
  Collection collection;
  collection.Add(1, 1, kStored);
  const uint64_t used_bytes = collection.store->used_bytes();
  const Sample unfinished =
      Sample({{"manifest.pb", std::string(100'000, 'm')}, {"perf.data", "p"}});
  for (const ChunkRef& chunk : unfinished.list.Chunks()) {
    ASSERT_TRUE(SendChunk(collection.store->chunks(), unfinished, chunk));
  }
  ASSERT_TRUE(collection.Apply({.bytes_limit = used_bytes}, 1));
  EXPECT_THAT(collection.Days(), ElementsAre(1));
  ASSERT_TRUE(collection.Apply({.bytes_limit = used_bytes - 1}, 1));
  EXPECT_THAT(collection.Days(), IsEmpty());
}

TEST(RetentionTest, RemovesNoMoreThanItMayAndSchedulesOfNothing) {
  Collection collection;
  for (int day = 1; day <= 5; ++day) {
    collection.Add(day, 0, kStored);
  }
  ASSERT_TRUE(collection.schedules->Put(IdOf(77), Bytes("of nothing")));
  const auto report =
      Must(collection.Apply({.age_limit_s = 1, .removals_max = 2}, 100));
  EXPECT_EQ(report.too_old, 2u);
  EXPECT_EQ(report.schedules, 1u);
  EXPECT_THAT(collection.Days(), ElementsAre(3, 4, 5));
}

// The order of removal of a collection by the rules of the header: days.
struct Rules {
  struct Bundle {
    int day;
    uint64_t group;
    BundleState state;
  };
  std::vector<Bundle> bundles;  // ascending by day

  // The state that is furthest, then the latest.
  int RepresentativeOf(uint64_t group) const {
    const auto rank = [](const Bundle& b) {
      return (b.state == kWitness    ? 20000
              : b.state == kUnsolved ? 10000
                                     : 0) +
             b.day;
    };
    const Bundle* best = nullptr;
    for (const Bundle& b : bundles) {
      if (b.group == group && (best == nullptr || rank(b) > rank(*best))) {
        best = &b;
      }
    }
    return best->day;
  }
  // Removes one.
  void MakeRoom() {
    const auto worth = [&](const Bundle& b) {
      const bool only = b.group == 0 || RepresentativeOf(b.group) == b.day;
      return !only ? 0 : b.group != 0 && b.state == kWitness ? 2 : 1;
    };
    bundles.erase(std::ranges::min_element(
        bundles, std::less(),
        [&](const Bundle& b) { return std::pair(worth(b), b.day); }));
  }
};

TEST(RetentionTest, RandomCollectionsShrinkByTheRules) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed);
    Collection collection;
    Rules rules;
    const int count = 1 + static_cast<int>(random.Below(12));
    for (int day = 1; day <= count; ++day) {
      constexpr std::array kStates = {kStored, kStored, kUnsolved, kWitness};
      const uint64_t group = random.Below(4);
      const BundleState state = group == 0 ? kStored : kStates[random.Below(4)];
      collection.Add(day, group, state);
      rules.bundles.push_back({day, group, state});
    }
    while (!rules.bundles.empty()) {
      rules.MakeRoom();
      collection.MakeRoom();
      std::vector<int> wanted;
      for (const Rules::Bundle& bundle : rules.bundles) {
        wanted.push_back(bundle.day);
      }
      ASSERT_EQ(collection.Days(), wanted);
    }
  }
}

// Whatever operation of the disk fails, the catalogue and the store agree on
// what is there, and a second try removes it.
TEST(RetentionTest, AFailingDiskLosesNoBundleFromSight) {
  bool finished = false;
  for (int works = 0; !finished; ++works) {
    ASSERT_LT(works, 200) << "it never finishes";
    SCOPED_TRACE(fmt::format("{} operations work", works));
    Collection collection;
    collection.Add(1, 1, kWitness);
    collection.Add(2, 0, kStored);
    collection.files.FailAfter(works);
    const RetentionOptions options = {.age_limit_s = 1};
    finished = collection.Apply(options, 100).has_value();
    collection.files.Heal();
    std::set<BundleId> listed;
    for (const BundleRow& row : Must(collection.catalogue->Bundles({})).rows) {
      listed.insert(row.id);
    }
    for (const StoredBundle& bundle : collection.store->List()) {
      EXPECT_TRUE(listed.contains(bundle.id)) << "out of sight";
    }
    ASSERT_TRUE(collection.Apply(options, 100));
    EXPECT_THAT(collection.Days(), IsEmpty());
    // A removal that failed leaves the bundle where only a restart finds it.
    collection.Reopen();
    EXPECT_EQ(collection.store->List().size(), 0u);
    EXPECT_EQ(collection.schedules->List().size(), 0u);
  }
}

// Of many pages of rows, some of which stay.
TEST(RetentionTest, LooksAtEveryBundle) {
  Collection collection;
  constexpr uint64_t kCount = 1000;
  for (uint64_t i = 0; i < kCount; ++i) {
    ASSERT_TRUE(collection.catalogue->Add(BundleOf(i)));
    if (i % 3 == 0) {
      ASSERT_TRUE(collection.catalogue->TakeForAnalysis());
    }
  }
  const uint64_t taken =
      Must(collection.catalogue->Counts())
          .by_state[static_cast<size_t>(BundleState::kAnalysing)];
  const auto report =
      Must(collection.Apply({.age_limit_s = 1, .removals_max = kCount}, 100));
  EXPECT_EQ(report.too_old, kCount - taken);
  EXPECT_EQ(Must(collection.catalogue->Counts()).bundles, taken);
}

// While the clock may be wrong.
TEST(RetentionTest, TheLastOfAGroupCanBeKept) {
  Collection bundles;
  bundles.Add(1, 1, BundleState::kUnsolved);
  bundles.Add(2, 1, BundleState::kUnsolved);
  bundles.Add(3, 2, BundleState::kWitness);
  bundles.Add(4, 0, BundleState::kStored);
  RetentionOptions options{.age_limit_s = 5 * kDay_s,
                           .keep_last_of_group = true};
  ASSERT_TRUE(bundles.Apply(options, 100).has_value());
  EXPECT_THAT(bundles.Days(), ElementsAre(2, 3, 4));
  options.keep_last_of_group = false;
  ASSERT_TRUE(bundles.Apply(options, 100).has_value());
  EXPECT_THAT(bundles.Days(), IsEmpty());
}

}  // namespace
}  // namespace clew::collector
