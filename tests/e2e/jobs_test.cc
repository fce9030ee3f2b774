// Goal: a bundle of a failing run that reaches the collector is grouped with
// its like, solved, and replays from what the collector hands out. Method:
// `clew record`, the collector's store and jobs with clew itself, which is
// confined there; another bundle is of no program at all.
#include "collector/jobs/jobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "common/check.h"
#include "tests/collector/samples.h"
#include "tests/e2e/clew_command.h"
#include "tests/support/must.h"

namespace clew::e2e {
namespace {

using collector::BundleId;
using collector::BundleState;
using test::Must;
using testing::HasSubstr;

// A collector without its network.
struct Collector {
  explicit Collector(const std::string& folder)
      : store(Must(collector::BundleStore::Open(
            PosixFileSystem(), collector::StoreOptions(folder, &now_s)))),
        schedules(Must(collector::ScheduleStore::Open(PosixFileSystem(),
                                                      folder + "/schedules"))),
        catalogue(
            Must(collector::Catalogue::Open(folder + "/catalogue.sqlite"))) {
    options.clew = Binary();
    options.work_folder = folder + "/work";
    options.analysis_time_limit_s = kOwnLimitSeconds;
    options.solve_time_limit_s = kOwnLimitSeconds;
    options.report = [](std::string_view line) {
      std::printf("%.*s\n", static_cast<int>(line.size()), line.data());
    };
  }

  BundleId Add(const collector::Sample& sample) {
    CLEW_CHECK(SendBundle(*store, sample).has_value(), "not stored");
    const collector::NewBundle bundle = {.id = sample.list.id(),
                                         .host = "here",
                                         .unit = "",
                                         .command = "program",
                                         .source = "qemu",
                                         .failure = "failure",
                                         .recorded_at_s = 1,
                                         .received_at_s = ++received,
                                         .size_bytes = 1,
                                         .sufficiency = std::nullopt};
    CLEW_CHECK(catalogue->Add(bundle).has_value(), "not added");
    return bundle.id;
  }
  void Work() {
    const auto runner = Must(
        collector::JobRunner::Start(options, *store, *catalogue, *schedules));
    ASSERT_TRUE(runner->WaitIdle(2 * kLimitSeconds)) << "still at work";
  }
  collector::BundleRow Row(const BundleId& id) {
    return Must(catalogue->Bundle(id)).value();
  }

  uint64_t now_s = 0;
  int64_t received = 0;
  std::unique_ptr<collector::BundleStore> store;
  std::unique_ptr<collector::ScheduleStore> schedules;
  std::unique_ptr<collector::Catalogue> catalogue;
  collector::JobOptions options;
};

TEST(JobsTest, AFailingRunIsGroupedSolvedAndReplays) {
  const Scratch scratch;
  std::filesystem::create_directory(scratch.Path("data"));
  Collector collector(scratch.Path("data"));
  std::vector<BundleId> ids;
  for (const int seed : {1, 2}) {
    const std::string bundle = scratch.Path(fmt::format("bank-{}.clew", seed));
    ASSERT_NO_FATAL_FAILURE(RecordFailure(bundle, "bank", seed));
    ids.push_back(
        collector.Add(collector::Sample(collector::ReadFiles(bundle))));
  }
  const BundleId nonsense =
      collector.Add(collector::SmallSample("no trace", "no image"));
  collector.Work();

  EXPECT_EQ(collector.Row(nonsense).state, BundleState::kUnsolved);
  EXPECT_THAT(collector.Row(nonsense).why,
              HasSubstr("exit status 4: clew: bundle.clew/"));
  EXPECT_EQ(collector.Row(ids[0]).signature, collector.Row(ids[1]).signature);
  const auto group =
      Must(collector.catalogue->Group(collector.Row(ids[0]).signature));
  ASSERT_TRUE(group);
  EXPECT_EQ(group->bundles, 2u);
  EXPECT_EQ(group->state, BundleState::kWitness) << group->why;
  EXPECT_THAT(group->title, HasSubstr("SIGABRT"));
  const auto analysis =
      Must(collector.catalogue->AnalysisOf(*group->representative));
  ASSERT_TRUE(analysis);
  EXPECT_THAT(analysis->backtraces, HasSubstr("bank.c"));

  // As whoever gets the bundle has it.
  const std::string out = scratch.Path("got.clew");
  ASSERT_TRUE(collector.store->Materialise(*group->representative, out));
  const auto schedule = Must(collector.schedules->Read(*group->representative));
  ASSERT_TRUE(schedule);
  ASSERT_TRUE(
      WriteWholeFile(PosixFileSystem(), out + "/schedule.pb", *schedule));
  const ProgramOutput replayed = Clew({"replay", "--check", "3", out});
  EXPECT_EQ(replayed.exit_status, kExitOk) << replayed.text;
}

}  // namespace
}  // namespace clew::e2e
