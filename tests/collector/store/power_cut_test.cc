// Goal: wherever the power is cut, a store opens again; every bundle that it
// lists is whole, and everything that it acknowledged is there.
// Method: exhaustive over the operations of a work load: the power goes after
// each, and for each every mixture of names and contents that the disk may hold
// is looked at; only what is in incoming/, where Open removes everything, is a
// random choice. The same with a collector that is killed and goes on before
// the power is cut.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <set>

#include "common/digest.h"
#include "tests/collector/samples.h"
#include "tests/support/power_cut_files.h"

namespace clew::collector {
namespace {

constexpr int kOutcomesMax = 2048;
constexpr uint64_t kSeed = 20231105;

const Sample& First() {
  static const Sample sample = SmallSample("first trace", "shared code");
  return sample;
}
const Sample& Second() {
  static const Sample sample = SmallSample("second trace", "shared code");
  return sample;
}
// Its chunks are sent and never committed.
const Sample& Third() {
  static const Sample sample = SmallSample("third trace", "other code");
  return sample;
}

// What clients were told.
struct Told {
  std::set<BundleId> there;
  std::set<BundleId> gone;
  std::set<ChunkRef> chunks;
};

Status Send(BundleStore& store, const Sample& sample, Told& told) {
  for (const ChunkRef& chunk : store.chunks().Missing(sample.list.Chunks())) {
    CLEW_RETURN_IF_ERROR(SendChunk(store.chunks(), sample, chunk));
    told.chunks.insert(chunk);
  }
  return {};
}

Status Commit(BundleStore& store, const Sample& sample, Told& told) {
  CLEW_RETURN_IF_ERROR(Send(store, sample, told));
  told.gone.erase(sample.list.id());
  CLEW_RETURN_IF_ERROR(store.Commit(sample.list));
  told.there.insert(sample.list.id());
  return {};
}

// Two bundles that share a chunk; one of them goes; chunks that nobody commits
// expire; the other is put together beside the store.
Status Work(FileSystem& files, const std::string& disk, Told& told) {
  uint64_t now_s = 1000;
  CLEW_ASSIGN_OR_RETURN(
      store, BundleStore::Open(files, StoreOptions(disk + "/data", &now_s)));
  CLEW_RETURN_IF_ERROR(Commit(*store, First(), told));
  CLEW_RETURN_IF_ERROR(Commit(*store, Second(), told));
  CLEW_RETURN_IF_ERROR(Send(*store, Third(), told));
  told.there.erase(First().list.id());
  told.chunks.clear();  // from here on some go
  CLEW_RETURN_IF_ERROR(store->Remove(First().list.id()));
  told.gone.insert(First().list.id());
  now_s += ChunkStore::kKeepDay_s;
  CLEW_RETURN_IF_ERROR(store->Expire());
  CLEW_RETURN_IF_ERROR(
      store->Materialise(Second().list.id(), disk + "/out.clew"));
  return {};
}

void ExpectKept(const std::string& disk, const Told& told) {
  const uint64_t now_s = 2000;
  PowerCutFiles files(disk);
  auto store = BundleStore::Open(files, StoreOptions(disk + "/data", &now_s));
  ASSERT_TRUE(store.has_value()) << store.error().message;
  std::set<BundleId> listed;
  for (const StoredBundle& bundle : (*store)->List()) {
    listed.insert(bundle.id);
    const Sample& sample = bundle.id == First().list.id() ? First() : Second();
    const std::string out = disk + "/" + bundle.id.hex();
    const Status made = (*store)->Materialise(bundle.id, out);
    ASSERT_TRUE(made.has_value()) << made.error().message;
    ASSERT_EQ(ReadFiles(out), sample.files);
  }
  for (const BundleId& id : told.there) {
    ASSERT_TRUE(listed.contains(id)) << "acknowledged, yet gone";
  }
  for (const BundleId& id : told.gone) {
    ASSERT_FALSE(listed.contains(id)) << "removed, yet there";
  }
  for (const ChunkRef& chunk : told.chunks) {
    const auto bytes = (*store)->chunks().Read(chunk);
    ASSERT_TRUE(bytes.has_value()) << bytes.error().message;
  }
  const StoreReport report = (*store)->Check();
  ASSERT_TRUE(report.faults.empty()) << report.faults.front();
  ASSERT_EQ(report.bundles, listed.size());
  // Whatever was left, everybody can send again.
  for (const Sample* sample : {&First(), &Second(), &Third()}) {
    ASSERT_TRUE(SendBundle(**store, *sample).has_value());
  }
  ASSERT_TRUE((*store)->Check().faults.empty());
  ASSERT_EQ((*store)->Check().bundles, 3u);
}

// A folder put together is there whole, or not at all.
void ExpectWholeFolder(const std::string& disk, bool finished) {
  const Files files = ReadFiles(disk);
  const bool found = files.contains("out.clew/perf.data");
  ASSERT_TRUE(found || !finished);
  for (const auto& [path, contents] : files) {
    ASSERT_TRUE(found || !path.starts_with("out.clew/")) << path;
  }
  if (found) {
    ASSERT_EQ(ReadFiles(disk + "/out.clew"), Second().files);
  }
}

class PowerCutTest : public testing::Test {
 protected:
  // Called when the power went, or all work was done.
  using AfterCut =
      std::function<void(PowerCutFiles& files, const std::string& disk,
                         const Told& told, bool finished)>;

  // Does the work on an empty disk with the power cut after 0, 1, ...
  // operations, until it is not.
  void CutEverywhere(const AfterCut& then) {
    bool finished = false;
    for (; !finished && !HasFatalFailure(); ++cuts_) {
      ASSERT_LT(cuts_, 1000) << "the work never ends";
      SCOPED_TRACE(cuts_);
      const TempFolder disk;
      PowerCutFiles files(disk.path());
      files.FailAfter(cuts_);
      Told told;
      finished = Work(files, disk.path(), told).has_value();
      then(files, disk.path(), told, finished);
    }
    EXPECT_GT(cuts_, 80);
  }

  void LookAtEveryOutcome(PowerCutFiles& files, const Told& told,
                          bool finished) {
    bool complete = false;
    (void)ForEveryChoice(
        kOutcomesMax, kSeed,
        [&](const PowerCutFiles::Choose& choose) {
          if (HasFatalFailure()) {
            return;
          }
          const TempFolder after;
          Random random(kSeed + static_cast<uint64_t>(outcomes_++));
          files.AfterCut(after / "disk", [&](const std::string& path,
                                             unsigned alternatives) {
            return path.find("/incoming/") == std::string::npos
                       ? choose(path, alternatives)
                       : static_cast<unsigned>(random.Below(alternatives));
          });
          ExpectWholeFolder(after / "disk", finished);
          ExpectKept(after / "disk", told);
        },
        &complete);
    EXPECT_TRUE(complete) << "more than " << kOutcomesMax << " outcomes";
  }
  void TearDown() override {
    printf("%d cuts, %d outcomes, seed %lu\n", cuts_, outcomes_,
           static_cast<unsigned long>(kSeed));
  }

  int cuts_ = 0;
  int outcomes_ = 0;
};

TEST_F(PowerCutTest, ListedIsWholeAndAcknowledgedIsThereAfterEveryCut) {
  CutEverywhere(
      [&](PowerCutFiles& files, const std::string&, const Told& told,
          bool finished) { LookAtEveryOutcome(files, told, finished); });
}

// What a killed collector left is visible, and not yet durable.
TEST_F(PowerCutTest, KilledRestartedAndThenCut) {
  CutEverywhere([&](PowerCutFiles& files, const std::string& disk, const Told&,
                    bool) {
    files.Heal();
    const uint64_t now_s = 3000;
    auto store = BundleStore::Open(files, StoreOptions(disk + "/data", &now_s));
    ASSERT_TRUE(store.has_value()) << store.error().message;
    Told told;
    for (const StoredBundle& bundle : (*store)->List()) {
      told.there.insert(bundle.id);
    }
    ASSERT_TRUE(Commit(**store, Second(), told).has_value());
    // A chunk that the store has need not be sent: so it must be durable.
    for (const ChunkRef& chunk : (*store)->chunks().Unheld()) {
      told.chunks.insert(chunk);
    }
    LookAtEveryOutcome(files, told, false);
  });
}

class MorePowerCutTest : public PowerCutTest {};

// The same where nothing is read at the start, and each name when it is asked
// for.
TEST_F(MorePowerCutTest, KilledRestartedUnreadAndThenCut) {
  CutEverywhere(
      [&](PowerCutFiles& files, const std::string& disk, const Told&, bool) {
        files.Heal();
        const uint64_t now_s = 3000;
        BundleStore::Options options = StoreOptions(disk + "/data", &now_s);
        options.read_later = true;
        auto store = BundleStore::Open(files, options);
        ASSERT_TRUE(store.has_value()) << store.error().message;
        Told told;
        for (const Sample* sample : {&First(), &Second(), &Third()}) {
          if ((*store)->IsWhole(sample->list.id())) {
            told.there.insert(sample->list.id());
          }
          const auto wanted = sample->list.Chunks();
          const auto missing = (*store)->chunks().Missing(wanted);
          std::ranges::set_difference(
              wanted, missing, std::inserter(told.chunks, told.chunks.end()));
        }
        ASSERT_TRUE(Commit(**store, Second(), told).has_value());
        LookAtEveryOutcome(files, told, false);
      });
}

}  // namespace
}  // namespace clew::collector
