// Goal: what fails under `clew record --source tracer --free`, all threads at
// once, is solved, replayed every time, and told as it came about; a program
// ends as it would have, whatever it does meanwhile; what has no meaning there
// is refused.
// Method: the built program, on programs that fail whatever their threads do,
// and on programs of the host that fork, replace themselves and end by signals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "tests/e2e/clew_command.h"

namespace clew::e2e {
namespace {

using testing::HasSubstr;
using testing::Not;

ProgramOutput RecordFree(const std::string& bundle,
                         const std::vector<std::string>& command,
                         const std::vector<std::string>& options = {}) {
  std::vector<std::string> args = {"record", "--source", "tracer",
                                   "--free", "-o",       bundle};
  args.insert(args.end(), options.begin(), options.end());
  args.emplace_back("--");
  args.insert(args.end(), command.begin(), command.end());
  return Clew(args);
}

struct FreeCase {
  const char* program;
  const char* told;  // by solve
};

void PrintTo(const FreeCase& c, std::ostream* out) { *out << c.program; }

class FreeFailureTest : public testing::TestWithParam<FreeCase> {};

TEST_P(FreeFailureTest, IsSolvedAndReplayed) {
  const Scratch scratch;
  const std::string bundle = scratch.Path("fail.clew");
  const ProgramOutput recorded =
      RecordFree(bundle, {Tracee(GetParam().program)}, {"--until-fail"});
  ASSERT_EQ(recorded.exit_status, kExitFinding) << recorded.text;
  EXPECT_THAT(recorded.text, Not(HasSubstr("not known whole")));
  EXPECT_THAT(recorded.text, Not(HasSubstr("to repeat this run")));
  const ProgramOutput info = Clew({"info", bundle});
  EXPECT_THAT(info.text, HasSubstr("software (tracer, threads at once)"));
  EXPECT_THAT(info.text, HasSubstr("loss          none"));
  ExpectSolvedAndReplayed(bundle, GetParam().told);
}

std::string NameOf(const testing::TestParamInfo<FreeCase>& test) {
  std::string name = test.param.program;
  std::ranges::replace(name, '/', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Programs, FreeFailureTest,
                         testing::Values(FreeCase{"handler", "memory-exact"},
                                         FreeCase{"channels", "memory-exact"},
                                         FreeCase{"spawns", "memory-exact"},
                                         FreeCase{"deadlocks/condition",
                                                  "  deadlock   "}),
                         NameOf);

struct EndCase {
  const char* name;
  std::vector<std::string> command;
  int exit_status;
  const char* told;  // by record
};

void PrintTo(const EndCase& c, std::ostream* out) { *out << c.name; }

class FreeEndTest : public testing::TestWithParam<EndCase> {};

TEST_P(FreeEndTest, IsThatOfTheProgramAndIsFollowed) {
  const Scratch scratch;
  const std::string bundle = scratch.Path("b.clew");
  const ProgramOutput recorded = RecordFree(bundle, GetParam().command);
  ASSERT_EQ(recorded.exit_status, GetParam().exit_status) << recorded.text;
  EXPECT_THAT(recorded.text, HasSubstr(GetParam().told));
  ExpectSolvedAndReplayed(bundle, "memory-exact");
}

INSTANTIATE_TEST_SUITE_P(
    Programs, FreeEndTest,
    testing::Values(
        EndCase{"exit", {"/bin/sh", "-c", "exit 3"}, kExitOk, "exit status 3"},
        EndCase{
            "exec", {"/bin/sh", "-c", "exec ls /"}, kExitOk, "exit status 0"},
        EndCase{"no_such_exec",
                {"/bin/sh", "-c", "exec /no/such/program"},
                kExitOk,
                "exit status 127"},
        EndCase{"children",
                {"/bin/sh", "-c", "ls / | wc -l; exit 4"},
                kExitOk,
                "exit status 4"},
        EndCase{"own_signal",
                {"/bin/sh", "-c", "kill -SEGV $$"},
                kExitFinding,
                "SIGSEGV"},
        EndCase{"asleep",
                {"/usr/bin/timeout", "-s", "KILL", "100", "/bin/sh", "-c",
                 "kill -ABRT $PPID"},
                kExitFinding,
                "SIGABRT"}),
    [](const auto& test) { return std::string(test.param.name); });

// A signal that waits for its handler as the program ends does not come first.
TEST(FreeTest, AProgramEndsAsItWouldWhileSignalsCome) {
  const Scratch scratch;
  for (int i = 0; i < 20; ++i) {
    for (const auto& [way, exit_status, told] :
         {std::tuple("kill", kExitFinding, "SIGUSR2"),
          std::tuple("exit", kExitOk, "exit status 7"),
          std::tuple("exec", kExitFinding, "SIGALRM")}) {
      SCOPED_TRACE(way);
      const std::string bundle = scratch.Path(fmt::format("{}{}", way, i));
      const ProgramOutput recorded =
          RecordFree(bundle, {Tracee("ends_among_signals"), way});
      ASSERT_EQ(recorded.exit_status, exit_status) << recorded.text;
      ASSERT_THAT(recorded.text, HasSubstr(told));
    }
  }
}

// What they run takes no room of the program's.
TEST(FreeTest, AProgramMakesAsManyProcessesAsItWants) {
  const Scratch scratch;
  const ProgramOutput recorded = RecordFree(
      scratch.Path("b.clew"),
      {"bash", "-c",
       "for ((i = 0; i < 1500; ++i)); do [ \"$(echo $i)\" = $i ] || exit 9; "
       "done"});
  EXPECT_EQ(recorded.exit_status, kExitOk) << recorded.text;
  EXPECT_THAT(recorded.text, HasSubstr("exit status 0"));
}

// More than there is room for at a time.
TEST(FreeTest, AProgramMakesAsMuchCodeAsItWants) {
  const Scratch scratch;
  const std::string bundle = scratch.Path("code.clew");
  const ProgramOutput recorded = RecordFree(bundle, {Tracee("makes_code")});
  EXPECT_EQ(recorded.exit_status, kExitFinding) << recorded.text;
  EXPECT_THAT(recorded.text, HasSubstr("signal 6 (SIGABRT)"));
  const ProgramOutput solved = ClewAtLeisure("solve", {bundle});
  EXPECT_EQ(solved.exit_status, kExitOk) << solved.text;
  EXPECT_THAT(solved.text, HasSubstr("memory-exact"));
}

TEST(FreeTest, WhatHasNoMeaningThereIsRefused) {
  const Scratch scratch;
  for (const char* option : {"--seed=2", "--cores=2", "--quantum=9", "--cyc"}) {
    SCOPED_TRACE(option);
    const ProgramOutput refused =
        RecordFree(scratch.Path("b.clew"), {"/bin/true"}, {option});
    EXPECT_EQ(refused.exit_status, kExitUsage) << refused.text;
    EXPECT_THAT(refused.text, HasSubstr("is not for --free"));
  }
  const ProgramOutput other =
      Clew({"record", "--source", "step", "--free", "-o",
            scratch.Path("b.clew"), "--", "/bin/true"});
  EXPECT_EQ(other.exit_status, kExitUsage) << other.text;
  EXPECT_THAT(other.text, HasSubstr("--free needs --source tracer"));
}

}  // namespace
}  // namespace clew::e2e
