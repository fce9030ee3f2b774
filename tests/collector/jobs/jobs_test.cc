// Goal: whatever a bundle makes of `clew`, it ends in a state that says so, no
// other bundle suffers, and a witness is there with its schedule. Method: a
// program in place of clew that does what the bundle says (child_probe.c).
#include "collector/jobs/jobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>

#include "collector/catalogue/child_reports.h"
#include "collector/jobs/job.h"
#include "common/check.h"
#include "tests/collector/catalogue/catalogue_model.h"
#include "tests/collector/samples.h"
#include "tests/support/failing_files.h"
#include "tests/support/must.h"
#include "tests/support/power_cut_files.h"
#include "tests/support/wait_until.h"
#include "transfer/protocol.h"

namespace clew::collector {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

using test::Must;
using test::WaitUntil;

// What Start says of a kernel without Landlock is none.
bool IsTrouble(std::string_view line) {
  return !line.starts_with("no Landlock in this kernel");
}

// A collector without its network. No limit of time ends a child, which has low
// priority and may be slow, unless a test says so.
class Jobs : public testing::Test {
 protected:
  Jobs() {
    store_ = Must(BundleStore::Open(PosixFileSystem(),
                                    StoreOptions(folder_.path(), &now_s_)));
    schedules_ =
        Must(ScheduleStore::Open(PosixFileSystem(), folder_ / "schedules"));
    catalogue_ = Must(Catalogue::Open(folder_ / "catalogue.sqlite"));
    options_.clew = CLEW_CHILD_PROBE;
    options_.work_folder = folder_ / "work";
    options_.solvers = 2;
    options_.solve_grace_s = 0;
    options_.solve_time_limit_s = test::kNeverInATest.count();
    options_.analysis_time_limit_s = test::kNeverInATest.count();
    options_.memory_bytes = 64 << 20;
    options_.retry_s = 0.01;
    options_.report = [this](std::string_view line) {
      const std::lock_guard lock(mutex_);
      reported_ += IsTrouble(line) ? std::string(line) + "\n" : "";
    };
  }

  // A bundle with these lines in its perf.data.
  BundleId Add(const std::string& lines, const std::string& command = "bank") {
    const Sample sample = SmallSample(lines, "image");
    CLEW_CHECK(SendBundle(*store_, sample).has_value(), "not stored");
    NewBundle bundle = BundleOf(++added_);
    bundle.id = sample.list.id();
    bundle.command = command;
    CLEW_CHECK(catalogue_->Add(bundle).has_value(), "not added");
    return bundle.id;
  }

  void Start() {
    runner_ =
        Must(JobRunner::Start(options_, *store_, *catalogue_, *schedules_));
  }
  void WorkUntilIdle() {
    Start();
    ASSERT_TRUE(runner_->WaitIdle(test::kWaitMax_s)) << "still at work";
    EXPECT_TRUE(fs::is_empty(options_.work_folder));
    EXPECT_EQ(runner_->counts().running, 0u);
  }

  BundleRow Row(const BundleId& id) {
    const auto row = Must(catalogue_->Bundle(id));
    CLEW_CHECK(row.has_value(), "no bundle {}", id.hex());
    return *row;
  }
  std::string ScheduleOf(const BundleId& id) {
    const auto bytes = Must(schedules_->Read(id));
    if (!bytes) {
      return "none";
    }
    return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
  }
  std::string Reported() {
    const std::lock_guard lock(mutex_);
    return reported_;
  }
  // Looks for what was put off.
  bool WaitForWitness(const BundleId& id) {
    return WaitUntil([&] {
      runner_->Wake();
      return Row(id).state == BundleState::kWitness;
    });
  }
  // Alone in its group, unsolved for this reason.
  void ExpectUnsolved(const std::string& mode, const std::string& why) {
    const BundleId id = Add("solve " + mode + "\n");
    WorkUntilIdle();
    EXPECT_EQ(Row(id).state, BundleState::kUnsolved) << mode;
    EXPECT_THAT(Row(id).why, HasSubstr(why)) << mode;
    EXPECT_EQ(ScheduleOf(id), "none");
    EXPECT_EQ(runner_->counts().unsolved, 1u);
  }

  uint64_t now_s_ = 0;
  TempFolder folder_;
  std::unique_ptr<BundleStore> store_;
  std::unique_ptr<ScheduleStore> schedules_;
  std::unique_ptr<Catalogue> catalogue_;
  JobOptions options_;
  uint64_t added_ = 0;
  std::mutex mutex_;
  std::string reported_;
  std::unique_ptr<JobRunner> runner_;
};

TEST_F(Jobs, EachGroupHasOneBundleSolvedAndItsScheduleKept) {
  std::vector<BundleId> ids;
  for (const char group : {'1', '2', '3'}) {
    for (int i = 0; i < 3; ++i) {
      ids.push_back(
          Add(fmt::format("solve witness\ngroup {}\n{}\n", group, i)));
    }
  }
  WorkUntilIdle();
  const auto groups = Must(catalogue_->Groups({}));
  ASSERT_EQ(groups.total, 3u);
  for (const GroupRow& group : groups.rows) {
    EXPECT_EQ(group.bundles, 3u);
    EXPECT_EQ(group.state, BundleState::kWitness);
    ASSERT_TRUE(group.representative);
    EXPECT_EQ(ScheduleOf(*group.representative), "a schedule");
    EXPECT_EQ(Row(*group.representative).grade, "memory-exact");
    EXPECT_EQ(Row(*group.representative).solve_seconds, 1.5);
  }
  EXPECT_EQ(schedules_->List().size(), 3u);
  const JobCounts counts = runner_->counts();
  EXPECT_EQ(counts.analyses, 9u);
  EXPECT_EQ(counts.analyses_failed, 0u);
  EXPECT_EQ(counts.solves, 3u);
  EXPECT_EQ(counts.witnesses, 3u);
  EXPECT_EQ(Reported(), "");
  EXPECT_THAT(Must(catalogue_->AnalysisOf(ids[0]))->backtraces,
              HasSubstr("\"threads\": []"));
}

TEST_F(Jobs, WhatIsAddedLaterIsWorkedOnWhenWoken) {
  WorkUntilIdle();
  const BundleId id = Add("solve contradiction\n");
  runner_->Wake();
  ASSERT_TRUE(runner_->WaitIdle(test::kWaitMax_s));
  EXPECT_EQ(Row(id).state, BundleState::kContradiction);
  EXPECT_EQ(Row(id).why, "one; two");
  EXPECT_EQ(runner_->counts().contradictions, 1u);
}

TEST_F(Jobs, AModelThatDiffersIsAStateOfItsOwnAndSaysWhere) {
  const BundleId id = Add("solve model differs\n");
  WorkUntilIdle();
  EXPECT_EQ(Row(id).state, BundleState::kModelDiffers);
  EXPECT_EQ(Row(id).why, "after `mremap`");
  EXPECT_EQ(ScheduleOf(id), "none");
  EXPECT_EQ(runner_->counts().model_differences, 1u);
}

TEST_F(Jobs, ABundleWithHigherSufficiencyIsTriedAfterOneInVain) {
  const BundleId first = Add("solve unknown\n");
  WorkUntilIdle();
  EXPECT_EQ(Row(first).why, "no answer: time limit");
  const Sample sample = SmallSample("solve witness\n", "image");
  ASSERT_TRUE(SendBundle(*store_, sample));
  NewBundle better = BundleOf(9);
  better.id = sample.list.id();
  better.sufficiency = 100;
  ASSERT_TRUE(catalogue_->Add(better));
  runner_->Wake();
  ASSERT_TRUE(runner_->WaitIdle(test::kWaitMax_s));
  EXPECT_EQ(Row(better.id).state, BundleState::kWitness);
}

// Of the same program with the same kind of failure; none stays without group.
// The one that hangs comes alone: its limit could end the others, too.
TEST_F(Jobs, BundlesWithoutBacktraceAreGroupedByKind) {
  const auto add = [&](const char* mode) {
    return Add(fmt::format("backtrace {}\nsolve unknown\n", mode), "/opt/bank");
  };
  std::vector<BundleId> ids = {add("hang")};
  const double long_limit_s = options_.analysis_time_limit_s;
  options_.analysis_time_limit_s = 1;
  WorkUntilIdle();
  EXPECT_EQ(runner_->counts().analyses_failed, 1u);
  EXPECT_EQ(runner_->counts().limits_hit, 1u);
  runner_.reset();
  options_.analysis_time_limit_s = long_limit_s;
  for (const char* mode :
       {"fail", "crash", "flood", "memory", "garbage", "no signature"}) {
    ids.push_back(add(mode));
  }
  const BundleId good = Add("solve witness\n", "/opt/bank");
  const BundleId other = Add("backtrace fail\nsolve unknown\nx\n", "sink");
  WorkUntilIdle();
  const Analysis by_kind = AnalysisByKind("signal 6 (SIGABRT)", "bank");
  for (const BundleId& id : ids) {
    EXPECT_EQ(Row(id).signature, by_kind.signature);
  }
  const auto group = Must(catalogue_->Group(by_kind.signature));
  ASSERT_TRUE(group);
  EXPECT_EQ(group->title, "signal 6 (SIGABRT) in bank (no backtrace)");
  EXPECT_EQ(group->bundles, ids.size());
  EXPECT_EQ(Row(good).state, BundleState::kWitness);
  EXPECT_NE(Row(other).signature, by_kind.signature);
  EXPECT_EQ(runner_->counts().analyses_failed, ids.size()) << "with the other";
  EXPECT_EQ(runner_->counts().limits_hit, 2u);
  EXPECT_THAT(
      Reported(),
      AllOf(HasSubstr("exit status 4: clew: perf.data: offset 0x8: \ufffd[31m"),
            HasSubstr("signal 11 (SIGSEGV)"),
            HasSubstr("wall-clock limit of 1 s"),
            HasSubstr("output limit of 4194304 bytes"),
            HasSubstr("memory limit of 67108864 bytes"),
            HasSubstr("no JSON object"), HasSubstr("64 hexadecimal digits")));
}

TEST_F(Jobs, AHangIsUnsolvedWithTheLimitNamed) {
  options_.solve_time_limit_s = 0.3;
  ExpectUnsolved("hang", "clew solve: ended by the wall-clock limit of 0.3 s");
}
TEST_F(Jobs, AMemoryHogIsUnsolvedWithTheLimitNamed) {
  ExpectUnsolved("memory", "memory limit of 67108864 bytes");
}
TEST_F(Jobs, AFloodIsUnsolvedWithTheLimitNamed) {
  ExpectUnsolved("flood", "output limit of 4194304 bytes");
}
TEST_F(Jobs, AFileWithoutEndIsUnsolvedWithTheLimitNamed) {
  ExpectUnsolved("file", "limit of 67108864 bytes for a file");
}
TEST_F(Jobs, ProcessesLeftBehindEndWithTheJob) {
  options_.solve_time_limit_s = 1;
  ExpectUnsolved("leave and hang", "wall-clock limit of 1 s");
}
TEST_F(Jobs, ACrashIsUnsolvedWithTheSignalNamed) {
  ExpectUnsolved("crash", "clew solve: ended by signal 11 (SIGSEGV)");
}
TEST_F(Jobs, AnErrorIsUnsolvedWithTheLastLineOfIt) {
  ExpectUnsolved("fail", "clew solve: exit status 4: clew: perf.data");
}
TEST_F(Jobs, AWitnessWithoutScheduleIsNone) {
  ExpectUnsolved("no schedule", "said witness and left no schedule");
}
TEST_F(Jobs, AWitnessWithAnotherExitStatusIsNone) {
  ExpectUnsolved("lie", "clew solve: exit status 5");
}

TEST_F(Jobs, ABundleBeyondTheLimitIsUnsolvedWithTheLimitNamed) {
  options_.work_bytes_max = 10;
  const BundleId id = Add("solve witness\n");
  WorkUntilIdle();
  EXPECT_EQ(Row(id).state, BundleState::kUnsolved);
  EXPECT_THAT(Row(id).why, HasSubstr("jobs take at most 10"));
}

// A child that was waited for until its limit would be unsolved.
TEST_F(Jobs, StopGivesBackWhatWasAtWork) {
  const BundleId id = Add("solve hang\n");
  Start();
  EXPECT_TRUE(WaitUntil([&] {
    return runner_->counts().analyses > 0 && runner_->counts().running > 0;
  }));
  runner_->Stop();
  runner_->Stop();
  EXPECT_EQ(Row(id).state, BundleState::kStored);
  EXPECT_EQ(runner_->counts().solves, 0u);
  const auto again = Must(catalogue_->TakeForSolving());
  EXPECT_EQ(again, id);
}

// The collector was killed while it worked on them.
TEST_F(Jobs, WhatWasTakenWhenTheCollectorDiedIsDoneAfterTheStart) {
  const BundleId analysed = Add("solve unknown\n1\n");
  ASSERT_TRUE(Must(catalogue_->TakeForAnalysis()));
  fs::create_directories(options_.work_folder + "/left/behind");
  WorkUntilIdle();
  EXPECT_EQ(Row(analysed).state, BundleState::kUnsolved);
}

// Children that hang.
TEST_F(Jobs, SeveralBundlesAreAnalysedAtOnce) {
  options_.analysers = 4;
  options_.solvers = 0;
  for (int i = 0; i < 4; ++i) {
    Add(fmt::format("backtrace hang\ngroup {}\n", i));
  }
  Start();
  EXPECT_TRUE(WaitUntil([&] { return runner_->counts().running == 4; }));
  runner_.reset();
}

TEST_F(Jobs, RefusesOptionsThatCannotWork) {
  for (const char* clew : {"clew", "", "/nonexistent/clew"}) {
    options_.clew = clew;
    const auto started =
        JobRunner::Start(options_, *store_, *catalogue_, *schedules_);
    ASSERT_FALSE(started) << clew;
    EXPECT_EQ(started.error().code, ErrorCode::kInvalidArgument);
  }
  options_.clew = CLEW_CHILD_PROBE;
  options_.solvers = JobOptions::kSolversMax + 1;
  EXPECT_FALSE(JobRunner::Start(options_, *store_, *catalogue_, *schedules_));
  options_.solvers = 1;
  options_.solve_time_limit_s = 0;
  EXPECT_FALSE(JobRunner::Start(options_, *store_, *catalogue_, *schedules_));
}

// A chunk is damaged: of this bundle alone, and until it is sent again.
TEST_F(Jobs, ADamagedBundleWaitsUntilItHealsAndTheNextOneDoesNot) {
  options_.put_off_s = 1;
  const BundleId damaged = Add("solve witness\ngroup 1\n");
  const BundleId whole = Add("solve witness\ngroup 2\n");
  const FileList list = Must(store_->ReadList(damaged));
  for (const FileEntry& file : list.files()) {
    if (file.path == "perf.data") {
      WriteFiles(folder_.path(),
                 {{fs::relative(store_->chunks().PathOf(file.chunks[0]),
                                folder_.path()),
                   std::string(file.size_bytes, 'x')}});
    }
  }
  WorkUntilIdle();
  EXPECT_EQ(Row(damaged).state, BundleState::kStored);
  EXPECT_EQ(Row(damaged).signature, "");
  EXPECT_EQ(Row(whole).state, BundleState::kWitness);
  EXPECT_GE(runner_->counts().put_off, 1u);
  ASSERT_TRUE(
      SendBundle(*store_, SmallSample("solve witness\ngroup 1\n", "image")));
  EXPECT_TRUE(WaitForWitness(damaged));
}

// More often than another failure of the disk would be tried.
TEST_F(Jobs, AFullDiskPutsOffForAsLongAsItLasts) {
  options_.put_off_s = 0;
  options_.retry_s_max = 0.02;
  const BundleId id = Add("solve witness\n");
  schedules_.reset();
  clew::test::FailingFiles full(1);  // enough to open
  schedules_ = Must(ScheduleStore::Open(full, folder_ / "schedules"));
  Start();
  EXPECT_TRUE(WaitUntil([&] { return runner_->counts().put_off >= 10; }));
  runner_.reset();
  EXPECT_EQ(Row(id).state, BundleState::kStored);
  schedules_ =
      Must(ScheduleStore::Open(PosixFileSystem(), folder_ / "schedules"));
  WorkUntilIdle();
  EXPECT_EQ(Row(id).state, BundleState::kWitness);
  runner_.reset();
}

// The schedule cannot be kept: tried three times, then said.
TEST_F(Jobs, AFailingDiskPutsOffAndThenIsAnOutcome) {
  const BundleId id = Add("solve witness\n");
  schedules_.reset();
  PowerCutFiles files(folder_.path());
  files.FailAfter(1);  // enough to open
  schedules_ = Must(ScheduleStore::Open(files, folder_ / "schedules"));
  WorkUntilIdle();
  EXPECT_EQ(runner_->counts().put_off, 2u);
  EXPECT_EQ(Row(id).state, BundleState::kUnsolved);
  EXPECT_NE(Row(id).why, "");
  EXPECT_EQ(ScheduleOf(id), "none");
  runner_.reset();
}

// Every second call fails, as on a disk that is full now and then.
class FlakyCatalogue final : public Catalogue {
 public:
  explicit FlakyCatalogue(Catalogue& real) : real_(real) {}
  Status CheckPages(const std::function<bool()>& go_on) override {
    return real_.CheckPages(go_on);
  }
  Status Health() const override { return real_.Health(); }
  Status Add(const NewBundle& bundle) override { return real_.Add(bundle); }
  Status Remove(const BundleId& id) override { return real_.Remove(id); }
  Result<std::optional<BundleId>> TakeForAnalysis() override {
    CLEW_RETURN_IF_ERROR(Spend());
    return real_.TakeForAnalysis();
  }
  Status SetAnalysis(const BundleId& id, const Analysis& analysis) override {
    CLEW_RETURN_IF_ERROR(Spend());
    return real_.SetAnalysis(id, analysis);
  }
  Result<std::optional<BundleId>> TakeForSolving() override {
    CLEW_RETURN_IF_ERROR(Spend());
    return real_.TakeForSolving();
  }
  Status SetSolved(const BundleId& id, const SolveOutcome& outcome) override {
    CLEW_RETURN_IF_ERROR(Spend());
    return real_.SetSolved(id, outcome);
  }
  Status PutOff(const BundleId& id, int64_t seconds) override {
    CLEW_RETURN_IF_ERROR(Spend());
    return real_.PutOff(id, seconds);
  }
  Status ReturnTaken() override { return real_.ReturnTaken(); }
  Result<ListPage<GroupRow>> Groups(const GroupQuery& query) const override {
    return real_.Groups(query);
  }
  Result<ListPage<BundleRow>> Bundles(const BundleQuery& query) const override {
    return real_.Bundles(query);
  }
  Result<std::optional<GroupRow>> Group(
      const std::string& signature) const override {
    return real_.Group(signature);
  }
  Result<std::optional<BundleRow>> Bundle(const BundleId& id) const override {
    return real_.Bundle(id);
  }
  Result<std::optional<Analysis>> AnalysisOf(
      const BundleId& id) const override {
    return real_.AnalysisOf(id);
  }
  Result<CatalogueCounts> Counts() const override { return real_.Counts(); }
  Status Change(const std::string& signature,
                const GroupChange& change) override {
    return real_.Change(signature, change);
  }
  Result<std::vector<std::string>> SignaturesWith(
      const std::string& prefix, uint64_t most) const override {
    return real_.SignaturesWith(prefix, most);
  }
  Result<std::string> PresentSignature(
      const std::string& signature) const override {
    return real_.PresentSignature(signature);
  }
  Result<std::vector<VersionCount>> VersionsOf(const std::string& signature,
                                               uint64_t most) const override {
    return real_.VersionsOf(signature, most);
  }
  Result<std::vector<DayCount>> DaysOf(const std::string& signature,
                                       int64_t first_day) const override {
    return real_.DaysOf(signature, first_day);
  }
  Result<std::string> RacesOf(const BundleId& id) const override {
    return real_.RacesOf(id);
  }

 private:
  Status Spend() {
    if (calls_++ % 2 == 0) {
      return SystemError(ENOSPC, "no space in this test");
    }
    return {};
  }
  Catalogue& real_;
  std::atomic<int> calls_ = 0;
};

TEST_F(Jobs, ACatalogueThatFailsNowAndThenLosesNothing) {
  std::vector<BundleId> ids;
  for (int i = 0; i < 4; ++i) {
    ids.push_back(Add(fmt::format("solve witness\ngroup {}\n", i)));
  }
  FlakyCatalogue flaky(*catalogue_);
  options_.retry_s_max = 0.05;  // one worker may have many failures in a row
  runner_ = Must(JobRunner::Start(options_, *store_, flaky, *schedules_));
  ASSERT_TRUE(runner_->WaitIdle(test::kWaitMax_s)) << "still at work";
  runner_.reset();
  for (const BundleId& id : ids) {
    EXPECT_EQ(Row(id).state, BundleState::kWitness);
  }
  EXPECT_THAT(Reported(), HasSubstr("no space in this test"));
}

// Whichever operation of the disk fails, as long as it works the next time.
TEST_F(Jobs, AFailureThatPassesCostsTimeAlone) {
  int reports = 0;
  int works = 0;
  for (int without_report = 0; without_report < 3; ++works) {
    SCOPED_TRACE(fmt::format("{} operations work", works));
    ASSERT_LT(works, 200) << "it never gets through";
    const TempFolder folder;
    PowerCutFiles files(folder.path());
    schedules_ = Must(ScheduleStore::Open(files, folder / "schedules"));
    store_ =
        Must(BundleStore::Open(files, StoreOptions(folder.path(), &now_s_)));
    const BundleId id = Add(fmt::format("solve witness\n{}\n", works));
    std::atomic<int> troubles = 0;
    options_.report = [&](std::string_view line) {
      if (IsTrouble(line)) {
        ++troubles;
        files.Heal();
      }
    };
    files.FailAfter(works);
    WorkUntilIdle();
    runner_.reset();
    EXPECT_EQ(Row(id).state, BundleState::kWitness);
    EXPECT_EQ(ScheduleOf(id), "a schedule");
    without_report = troubles == 0 ? without_report + 1 : 0;
    reports += troubles;
    // The group is that of the next one, too, and must be tried again.
    ASSERT_TRUE(catalogue_->Remove(id));
    schedules_.reset();
    store_.reset();
  }
  std::printf("%d operations, %d troubles\n", works, reports);
  EXPECT_GT(reports, 5);
}

// A child that was taken over puts something else in the schedule's place.
TEST_F(Jobs, OnlyAPlainFileOfTheBundlesFolderIsASchedule) {
  WriteFiles(folder_.path(), {{"work/readme", ""}, {"secret", "of others"}});
  const BundleId id = Add("solve witness\n");
  Job job(options_, *store_, /*stop_fd=*/-1);
  ASSERT_TRUE(job.Prepare(id));
  const std::string bundle =
      options_.work_folder + "/" + id.hex() + "/bundle.clew";
  const std::string schedule = bundle + "/schedule.pb";
  const auto expect_none = [&] {
    const auto read = job.ReadSchedule();
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, ErrorCode::kCorruptInput);
    fs::remove_all(schedule);
  };
  expect_none();
  fs::create_symlink(folder_ / "secret", schedule);
  expect_none();
  fs::create_directory(schedule);
  expect_none();
  ASSERT_EQ(mkfifo(schedule.c_str(), 0600), 0);
  expect_none();
  WriteFiles(bundle, {{"schedule.pb", "a schedule"}});
  EXPECT_EQ(Must(job.ReadSchedule()).size(), 10u);
  fs::resize_file(schedule, transfer::kScheduleBytesMax + 1);
  const auto large = job.ReadSchedule();
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().code, ErrorCode::kLimit);
  // The folder itself.
  fs::rename(bundle, folder_ / "elsewhere");
  fs::create_symlink(folder_ / "elsewhere", bundle);
  expect_none();
}

TEST(ChildReportsTest, EveryPairOfStatusAndVerdictHasOneMeaning) {
  for (int status = 0; status < 80; ++status) {
    for (const char* verdict :
         {"witness", "unsat", "unknown", "model-differs", "other"}) {
      const std::string json = fmt::format(R"({{"verdict": "{}"}})", verdict);
      const auto outcome = ParseSolveReport(json, status);
      const std::string pair = fmt::format("{} {}", status, verdict);
      EXPECT_EQ(outcome.has_value(), pair == "0 witness" || pair == "1 unsat" ||
                                         pair == "5 unknown" ||
                                         pair == "70 model-differs")
          << pair;
    }
  }
}

TEST(ChildReportsTest, OddDocumentsAreRefusedOrHarmless) {
  for (const char* json : {"", "[]", "7", "null", "{", "{\"verdict\": 0}",
                           "{\"verdict\": []}", "\"witness\""}) {
    EXPECT_FALSE(ParseSolveReport(json, 0)) << json;
    EXPECT_FALSE(ParseBacktraces(json)) << json;
  }
  const auto odd = ParseSolveReport(
      R"({"verdict": "witness", "grade": 5, "seconds": -1e300})", 0);
  ASSERT_TRUE(odd);
  EXPECT_EQ(odd->grade, "");
  EXPECT_EQ(odd->seconds, 0);
  EXPECT_EQ(odd->races, "");
  // What waits is kept with the races, and of many the first ones.
  for (const int count : {0, 3, 1000}) {
    nlohmann::json report = {{"verdict", "witness"}, {"races", "none"}};
    report["waits"] = std::vector<int>(count);
    const auto kept = ParseSolveReport(report.dump(), 0);
    ASSERT_TRUE(kept);
    const auto races = nlohmann::json::parse(kept->races, nullptr, false);
    EXPECT_EQ(races.is_object(), count > 0) << kept->races;
    EXPECT_EQ(count > 0 ? races["waits"].size() : 0u,
              std::min<size_t>(static_cast<size_t>(count), 16));
  }
  const auto conflicts = ParseSolveReport(
      R"({"verdict": "unsat", "conflict": [1, "a", {}, "b"]})", 1);
  ASSERT_TRUE(conflicts);
  EXPECT_EQ(conflicts->why, "a");
  for (const char* difference : {"null", "7", "{}", R"({"text": [1]})"}) {
    const auto differs = ParseSolveReport(
        fmt::format(R"({{"verdict": "model-differs", "model_difference": {}}})",
                    difference),
        70);
    ASSERT_TRUE(differs);
    EXPECT_EQ(differs->why, "");
  }
  EXPECT_FALSE(ParseBacktraces(std::string(100'000, '[')));
}

}  // namespace
}  // namespace clew::collector
