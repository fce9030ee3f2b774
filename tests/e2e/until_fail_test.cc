// Goal: `clew record --until-fail --jobs J` keeps the run of the least seed
// that fails, as with one job, and tells what one job tells; whatever ends it,
// no process and no folder of its runs is left. Method: programs whose failure
// depends on the schedule alone, with one job and with several; and a shell
// script that knows the seed of its run, by the name of the folder that its
// recorder writes, so that the runs of some seeds fail, pass or wait as the
// test says, in the order that files give them.
#include "recorder/software/until_fail.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "common/os/child_process.h"
#include "common/os/process_state.h"
#include "tests/e2e/clew_command.h"
#include "tests/support/wait_until.h"

namespace clew::e2e {
namespace {

namespace fs = std::filesystem;
using recorder::RecordOptions;
using recorder::RecordOutcome;
using recorder::RecordUntilFail;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

// What a run of a script may be, once it is known which. What waits does so for
// longer than any test; alone, where a time limit is over at once by the
// program's clock, for what nobody writes.
constexpr const char* kFail = "kill -ABRT $$";
constexpr const char* kWait = "sleep 600 & begin; wait";
constexpr const char* kWaitAlone =
    "mkfifo never$seed; begin; exec cat never$seed";

std::string Await(const std::string& file) {
  return "until [ -e " + file + " ]; do sleep 0.1; done; ";
}

// A folder, and the program that runs there.
class Runs {
 public:
  // `by_seed`: "1) echo one;; *) echo others;;", of case in sh(1).
  explicit Runs(const std::string& by_seed)
      : script_("cd " + scratch_.Path("") +
                "; begin() { echo $$ $! >> pids; : > begun$seed; }; "
                "seed=$(ls -l /proc/$PPID/fd | "
                "sed -n 's/.*seed\\([0-9]*\\)[.]partial.*/\\1/p' | "
                "sort -u); case $seed in " +
                by_seed + " esac") {}

  std::vector<std::string> command() const {
    return {"/bin/sh", "-c", script_};
  }
  std::string output() const { return scratch_.Path("b.clew"); }
  bool Has(const std::string& file) const {
    return fs::exists(scratch_.Path(file));
  }
  Result<RecordOutcome> Record(uint32_t jobs, uint32_t tries_max = 20) const {
    RecordOptions options;
    options.command = command();
    options.output = output();
    return RecordUntilFail(options, {.tries_max = tries_max, .jobs = jobs},
                           nullptr);
  }
  // Those of the runs that began to wait, and what these started.
  std::vector<pid_t> Processes() const {
    std::ifstream file(scratch_.Path("pids"));
    std::vector<pid_t> processes;
    for (pid_t process = 0; file >> process;) {
      processes.push_back(process);
    }
    return processes;
  }
  std::vector<pid_t> Alive() const {
    std::vector<pid_t> processes = Processes();
    std::erase_if(processes, [](pid_t process) { return !IsAlive(process); });
    return processes;
  }
  // What is there, but for the files of the script.
  std::vector<std::string> Bundles() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(scratch_.Path(""))) {
      if (entry.is_directory()) {
        names.push_back(entry.path().filename());
      }
    }
    return names;
  }

 private:
  Scratch scratch_;
  std::string script_;
};

bool HaveNoChild() {
  siginfo_t info = {};
  return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0;
}

class SameAsOneJobTest : public testing::TestWithParam<const char*> {};

TEST_P(SameAsOneJobTest, TheLeastSeedThatFailsIsKept) {
  const Scratch scratch;
  for (const uint64_t seed : {1, 40, 900}) {
    RecordOptions options;
    options.command = {Tracee(GetParam())};
    options.seed = seed;
    options.output = scratch.Path(fmt::format("one{}", seed));
    const auto one = RecordUntilFail(options, {.tries_max = 300}, nullptr);
    ASSERT_TRUE(one.has_value()) << one.error().message;
    options.output = scratch.Path(fmt::format("three{}", seed));
    const auto three =
        RecordUntilFail(options, {.tries_max = 300, .jobs = 3}, nullptr);
    ASSERT_TRUE(three.has_value()) << three.error().message;
    EXPECT_EQ(three->seed, one->seed);
    EXPECT_EQ(three->failure.kind, one->failure.kind);
    EXPECT_EQ(three->failure.signal, one->failure.signal);
    EXPECT_EQ(three->failure.ip, one->failure.ip);
    EXPECT_EQ(three->insns, one->insns);
    EXPECT_EQ(three->pt_bytes, one->pt_bytes);
    EXPECT_TRUE(fs::exists(options.output + "/manifest.pb"));
    EXPECT_FALSE(fs::exists(options.output + ".partial"));
    EXPECT_TRUE(HaveNoChild());
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, SameAsOneJobTest,
                         testing::Values("bank", "order", "seqlock", "treiber",
                                         "lost_wakeup"),
                         [](const auto& test) {
                           return std::string(test.param);
                         });

TEST(UntilFailTest, WhereNoRunFailsTheMessageIsThatOfOneJob) {
  const Scratch scratch;
  RecordOptions options;
  options.command = {"/bin/sh", "-c", "exit 3"};
  options.output = scratch.Path("b.clew");
  options.seed = 5;
  for (const uint32_t jobs : {1, 2, 7}) {
    const auto outcome =
        RecordUntilFail(options, {.tries_max = 5, .jobs = jobs}, nullptr);
    ASSERT_FALSE(outcome.has_value());
    EXPECT_EQ(outcome.error().code, ErrorCode::kLimit);
    EXPECT_EQ(outcome.error().message,
              "none of 5 runs failed: 5 ended with exit status 3; seeds 5 to 9 "
              "were tried; --fail-on says which status counts as a failure");
    EXPECT_FALSE(fs::exists(options.output + ".partial"));
    EXPECT_TRUE(HaveNoChild());
  }
}

TEST(UntilFailTest, ALowerSeedThatFailsLaterWins) {
  const Runs runs("1) " + Await("failing3") + "exit 0;; 2) " +
                  Await("failing3") + kFail + ";; 3) : > failing3; " + kFail +
                  ";; *) : > begun$seed; exit 0;;");
  const auto outcome = runs.Record(3);
  ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
  EXPECT_EQ(outcome->seed, 2u);
  EXPECT_EQ(outcome->failure.signal, SIGABRT);
  EXPECT_THAT(runs.Bundles(), ElementsAre("b.clew"));
}

TEST(UntilFailTest, RunsOfHigherSeedsAreEndedWithAllTheyStarted) {
  const Runs runs("1) " + Await("begun2") + Await("begun3") + kFail + ";; *) " +
                  kWait + ";;");
  const auto outcome = runs.Record(3);
  ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
  EXPECT_EQ(outcome->seed, 1u);
  EXPECT_FALSE(runs.Has("begun4"));
  EXPECT_EQ(runs.Processes().size(), 4u);
  EXPECT_THAT(runs.Alive(), IsEmpty());
  EXPECT_THAT(runs.Bundles(), ElementsAre("b.clew"));
  EXPECT_TRUE(HaveNoChild());
}

TEST(UntilFailTest, WhatAFailingRunLeavesBehindEndsToo) {
  const Runs runs(std::string("*) sleep 600 & begin; ") + kFail + ";;");
  const auto outcome = runs.Record(2);
  ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
  EXPECT_EQ(outcome->seed, 1u);
  EXPECT_THAT(outcome->left, IsEmpty());
  EXPECT_THAT(runs.Alive(), IsEmpty());
}

TEST(UntilFailTest, AnOutputThatExistsIsRefusedBeforeAnyRun) {
  const Runs runs("*) : > begun; exit 0;;");
  fs::create_directory(runs.output());
  const auto outcome = runs.Record(3);
  ASSERT_FALSE(outcome.has_value());
  EXPECT_EQ(outcome.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(outcome.error().message,
              HasSubstr("exists; remove it or choose another name"));
  EXPECT_FALSE(runs.Has("begun"));
}

TEST(UntilFailTest, AProgramThatCannotBeRecordedIsToldOnceAsWithOneJob) {
  const Scratch scratch;
  RecordOptions options;
  options.command = {scratch.Path("program")};
  std::ofstream(options.command[0]) << "no program\n";
  fs::permissions(options.command[0], fs::perms::owner_all);
  options.output = scratch.Path("b.clew");
  const auto one = RecordUntilFail(options, {.tries_max = 9}, nullptr);
  const auto three =
      RecordUntilFail(options, {.tries_max = 9, .jobs = 3}, nullptr);
  ASSERT_FALSE(one.has_value());
  ASSERT_FALSE(three.has_value());
  EXPECT_EQ(three.error().code, one.error().code);
  EXPECT_EQ(three.error().message, one.error().message);
  EXPECT_FALSE(fs::exists(options.output + ".partial"));
  EXPECT_TRUE(HaveNoChild());
}

TEST(UntilFailTest, ARecorderThatDiesIsNamedWithItsSeed) {
  const Runs runs(std::string("1) exit 0;; 2) kill -KILL $PPID;; *) ") + kWait +
                  ";;");
  const auto outcome = runs.Record(3);
  ASSERT_FALSE(outcome.has_value());
  EXPECT_EQ(outcome.error().code, ErrorCode::kSystem);
  EXPECT_THAT(outcome.error().message,
              StartsWith("the process that recorded seed 2 ended by signal 9 "
                         "(SIGKILL) and told no outcome"));
  EXPECT_THAT(runs.Alive(), IsEmpty());
  EXPECT_THAT(runs.Bundles(), IsEmpty());
  EXPECT_TRUE(HaveNoChild());
}

TEST(UntilFailTest, ALowerSeedThatFailsMattersMoreThanAnError) {
  const Runs runs("1) " + Await("dying2") + kFail +
                  ";; 2) : > dying2; kill -KILL $PPID;; *) " + kWait + ";;");
  const auto outcome = runs.Record(2);
  ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
  EXPECT_EQ(outcome->seed, 1u);
  EXPECT_THAT(runs.Bundles(), ElementsAre("b.clew"));
}

TEST(UntilFailTest, WhereThreadsRunAtOnceTheFirstThatFailsIsKept) {
  const Runs runs("1) " + std::string(kWait) + ";; *) " + Await("begun1") +
                  kFail + ";;");
  RecordOptions options;
  options.command = runs.command();
  options.output = runs.output();
  options.is_free = true;
  const auto outcome =
      RecordUntilFail(options, {.tries_max = 9, .jobs = 2}, nullptr);
  ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
  EXPECT_EQ(outcome->failure.signal, SIGABRT);
  EXPECT_THAT(runs.Alive(), IsEmpty());
  EXPECT_THAT(runs.Bundles(), ElementsAre("b.clew"));
}

TEST(UntilFailTest, JobsAreOneToSixtyFour) {
  const Scratch scratch;
  for (const char* jobs : {"0", "65"}) {
    const ProgramOutput output =
        Clew({"record", "--until-fail", "--jobs", jobs, "-o",
              scratch.Path("b.clew"), "--", "true"});
    EXPECT_EQ(output.exit_status, kExitUsage) << output.text;
    EXPECT_THAT(output.text, HasSubstr("must be 1 to 64"));
  }
}

TEST(UntilFailTest, JobsNeedUntilFail) {
  const Scratch scratch;
  const ProgramOutput output = Clew(
      {"record", "--jobs", "2", "-o", scratch.Path("b.clew"), "--", "true"});
  EXPECT_EQ(output.exit_status, kExitUsage) << output.text;
  EXPECT_THAT(output.text, HasSubstr("add --until-fail"));
}

// Three runs that wait, of the built program.
class EndedTest : public testing::TestWithParam<int> {
 protected:
  pid_t Start(const Runs& runs) {
    std::vector<std::string> line = {Binary(),      "record", "--until-fail",
                                     "--jobs",      "3",      "-o",
                                     runs.output(), "--"};
    for (const std::string& word : runs.command()) {
      line.push_back(word);
    }
    const auto clew = SpawnProgram(line, {});
    EXPECT_TRUE(clew.has_value());
    EXPECT_TRUE(test::WaitUntil([&] {
      return runs.Has("begun1") && runs.Has("begun2") && runs.Has("begun3");
    }));
    return clew.value();
  }
};

TEST_P(EndedTest, BySignalNothingIsLeft) {
  const Runs runs(std::string("*) ") + kWait + ";;");
  const pid_t clew = Start(runs);
  kill(clew, GetParam());
  const auto status = WaitForChild(clew);
  ASSERT_TRUE(status.has_value()) << status.error().message;
  EXPECT_TRUE(WIFSIGNALED(*status));
  EXPECT_EQ(WTERMSIG(*status), GetParam());
  EXPECT_EQ(runs.Processes().size(), 6u);
  EXPECT_THAT(runs.Alive(), IsEmpty());
  EXPECT_THAT(runs.Bundles(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Signals, EndedTest,
                         testing::Values(SIGINT, SIGTERM, SIGHUP),
                         [](const auto& test) {
                           return std::to_string(test.param);
                         });

TEST_F(EndedTest, WhenItIsKilledTheProgramsEndAndTheNextHasTheName) {
  const Runs runs(std::string("*) ") + kWaitAlone + ";;");
  const pid_t clew = Start(runs);
  kill(clew, SIGKILL);
  ASSERT_TRUE(WaitForChild(clew).has_value());
  EXPECT_EQ(runs.Processes().size(), 3u);
  EXPECT_TRUE(test::WaitUntil([&] { return runs.Alive().empty(); }));
  const ProgramOutput next =
      Clew({"record", "-o", runs.output(), "--", "/bin/true"});
  EXPECT_EQ(next.exit_status, kExitOk) << next.text;
  EXPECT_THAT(runs.Bundles(), ElementsAre("b.clew"));
}

}  // namespace
}  // namespace clew::e2e
