// Goal: with `clew record --children` the bundle is of the process that failed
// first, whichever a program made it by: it is solved and replayed as any
// other; where none failed, it is of the program. Children do what they do
// unrecorded, and what still runs when the program ends goes on. Method: a
// program with workers, and shells, by turns and free.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "common/os/process_state.h"
#include "common/result.h"
#include "tests/e2e/clew_command.h"

namespace clew::e2e {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class ChildrenTest : public testing::TestWithParam<bool> {
 protected:
  // By turns or free, as the test says; what is to be recorded is behind "--".
  ProgramOutput Record(std::vector<std::string> words) const {
    words.insert(words.begin(), {"record", "--children", "-o", bundle()});
    if (GetParam()) {
      words.insert(words.begin() + 1, "--free");
    }
    return Clew(words);
  }
  ProgramOutput RecordShell(const std::string& line) const {
    return Record({"--", "/bin/sh", "-c", line});
  }
  std::string bundle() const { return scratch_.Path("b.clew"); }
  // Nothing but the bundle is left.
  void ExpectTidy() const {
    for (const auto& entry :
         std::filesystem::directory_iterator(scratch_.Path(""))) {
      EXPECT_EQ(entry.path().string(), bundle());
    }
    EXPECT_FALSE(std::filesystem::exists(bundle() + "/children"));
  }

  const Scratch scratch_;
};

INSTANTIATE_TEST_SUITE_P(, ChildrenTest, testing::Bool(),
                         [](const auto& which) {
                           return std::string(which.param ? "free" : "turns");
                         });

TEST_P(ChildrenTest, AWorkerThatFailsIsSolvedAndReplayed) {
  const ProgramOutput recorded = Record({"--", Tracee("workers"), "abort"});
  ASSERT_EQ(recorded.exit_status, kExitFinding) << recorded.text;
  EXPECT_THAT(recorded.text,
              AllOf(HasSubstr("SIGABRT"), HasSubstr("that is process ")));
  EXPECT_THAT(recorded.text, Not(HasSubstr("warning")));
  ExpectTidy();
  ExpectSolvedAndReplayed(bundle(), "memory-exact");
}

TEST_P(ChildrenTest, AChildOfAWorkerIsFoundAsWell) {
  const ProgramOutput recorded = Record({"--", Tracee("workers"), "nested"});
  ASSERT_EQ(recorded.exit_status, kExitFinding) << recorded.text;
  EXPECT_THAT(recorded.text, HasSubstr("SIGABRT"));
  ExpectTidy();
  const ProgramOutput solved = ClewAtLeisure("solve", {bundle()});
  EXPECT_EQ(solved.exit_status, kExitOk) << solved.text;
}

TEST_P(ChildrenTest, WhereNoneFailsTheBundleIsOfTheProgram) {
  const ProgramOutput recorded = Record({"--", Tracee("workers"), "calm"});
  ASSERT_EQ(recorded.exit_status, kExitOk) << recorded.text;
  EXPECT_THAT(recorded.text, AllOf(HasSubstr("did not fail (exit status 0)"),
                                   Not(HasSubstr("that is process")),
                                   Not(HasSubstr("warning"))));
  ExpectTidy();
  const ProgramOutput solved = ClewAtLeisure("solve", {bundle()});
  EXPECT_EQ(solved.exit_status, kExitOk) << solved.text;
}

// Its shell, and another process that a signal ends as its reader has gone.
TEST_P(ChildrenTest, AProgramThatAScriptStartsIsRecordedFromItsStart) {
  const ProgramOutput recorded =
      RecordShell("yes | head -n 1; true; " + Tracee("workers") + " calm; (" +
                  Tracee("signalled") + "); echo $?");
  ASSERT_EQ(recorded.exit_status, kExitFinding) << recorded.text;
  EXPECT_THAT(recorded.text, AllOf(HasSubstr("y\n"), HasSubstr("134\n")));
  ExpectTidy();
}

TEST_P(ChildrenTest, AStatusThatIsPassedOnIsOfTheProcessWhereItBegan) {
  ProgramOutput recorded =
      Record({"--fail-on", "exit!=0", "--", "/bin/sh", "-c",
              "false; /bin/sh -c 'false; exit 3' || exit 4"});
  ASSERT_EQ(recorded.exit_status, kExitFinding) << recorded.text;
  EXPECT_THAT(recorded.text, AllOf(HasSubstr("failed: exit status 3"),
                                   HasSubstr("\"/bin/sh -c false; exit 3\"")));
  ExpectTidy();
  std::filesystem::remove_all(bundle());
  recorded =
      Record({"--fail-on", "exit!=0", "--", "/bin/sh", "-c", "false; exit 0"});
  EXPECT_EQ(recorded.exit_status, kExitOk) << recorded.text;
  EXPECT_THAT(recorded.text, HasSubstr("did not fail (exit status 0)"));
}

// As those of `go run` and of a make that fails are, once they have ended.
TEST_P(ChildrenTest, AProgramThatIsRemovedIsInTheBundle) {
  const std::string shell = bundle() + ".sh";
  std::filesystem::copy_file("/bin/sh", shell);
  const ProgramOutput recorded =
      Record({"--", shell, "-c", "rm " + shell + "; kill -ABRT $$"});
  ASSERT_EQ(recorded.exit_status, kExitFinding) << recorded.text;
  ExpectTidy();
  const ProgramOutput solved = ClewAtLeisure("solve", {bundle()});
  EXPECT_EQ(solved.exit_status, kExitOk) << solved.text;
}

TEST_P(ChildrenTest, ASearchGoesOnUntilAChildFails) {
  for (const char* jobs : {"1", "2"}) {
    ProgramOutput recorded = Record(
        {"--until-fail", "3", "--jobs", jobs, "--", Tracee("workers"), "calm"});
    EXPECT_EQ(recorded.exit_status, kExitLimit) << recorded.text;
    recorded = Record({"--until-fail", "3", "--jobs", jobs, "--",
                       Tracee("workers"), "abort"});
    EXPECT_EQ(recorded.exit_status, kExitFinding) << recorded.text;
    ExpectTidy();
    std::filesystem::remove_all(bundle());
  }
}

TEST(ChildrenRefusedTest, WhereTheyCannotBeRecorded) {
  const Scratch scratch;
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"--source", "qemu"},
        {"--source", "step", "--inputs"},
        {"--source", "perf"}}) {
    std::vector<std::string> command = {"record", "--children", "-o",
                                        scratch.Path("b.clew")};
    command.insert(command.end(), words.begin(), words.end());
    command.insert(command.end(), {"--", "/bin/true"});
    const ProgramOutput refused = Clew(command);
    EXPECT_EQ(refused.exit_status, kExitUsage) << refused.text;
    EXPECT_THAT(refused.text, HasSubstr("--children is not for " +
                                        (words.back() == "--inputs"
                                             ? words.back()
                                             : "--source " + words.back())));
  }
}

TEST_P(ChildrenTest, WhatStillRunsGoesOn) {
  const std::string pid_file = scratch_.Path("b.clew.pid");
  const ProgramOutput recorded =
      RecordShell("sleep 600 > /dev/null 2>&1 & echo $! > " + pid_file);
  EXPECT_EQ(recorded.exit_status, kExitOk) << recorded.text;
  pid_t sleeper = 0;
  std::ifstream(pid_file) >> sleeper;
  ASSERT_GT(sleeper, 0);
  EXPECT_TRUE(IsAlive(sleeper));
  std::ifstream status(fmt::format("/proc/{}/status", sleeper));
  const std::string text((std::istreambuf_iterator<char>(status)), {});
  EXPECT_THAT(text, HasSubstr("TracerPid:\t0\n"));
  kill(sleeper, SIGKILL);
}

}  // namespace
}  // namespace clew::e2e
