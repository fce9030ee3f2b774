// Goal: stock gdb on a replayed failing run shows the failure, every thread,
// and by a watchpoint and reverse-continue the write that caused it, at the
// line of the source that is marked RACY-WRITE. Method: gdb in batch mode
// through `clew replay --batch`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/result.h"
#include "tests/e2e/clew_command.h"

namespace clew::e2e {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

// Records and solves `program`; the bundle's path, empty on failure.
std::string FailingRun(const Scratch& scratch, const std::string& program) {
  const std::string bundle = scratch.Path(program + ".clew");
  const ProgramOutput recorded =
      Clew({"record", "--until-fail", "-o", bundle, "--", Tracee(program)});
  EXPECT_EQ(recorded.exit_status, kExitFinding) << recorded.text;
  const ProgramOutput solved = Clew({"solve", bundle});
  EXPECT_EQ(solved.exit_status, kExitOk) << solved.text;
  return bundle;
}

// What gdb prints for these commands at the end of the replay.
std::string Gdb(const std::string& bundle,
                const std::vector<std::string>& commands) {
  std::vector<std::string> arguments = {"replay", "--batch", "--at", "end"};
  for (const std::string& command : commands) {
    arguments.insert(arguments.end(), {"-ex", command});
  }
  arguments.push_back(bundle);
  return Clew(arguments, 120).text;
}

TEST(GdbTest, EveryThreadHasABacktraceIntoTheProgram) {
  const Scratch scratch;
  const std::string bundle = FailingRun(scratch, "pfscan");
  const std::string text =
      Gdb(bundle, {"info threads", "thread apply all backtrace"});
  EXPECT_THAT(text, HasSubstr("SIGSEGV"));
  EXPECT_THAT(text, ContainsRegex("CountWord|Scan"));
  EXPECT_THAT(text, ContainsRegex(" in main .*pfscan.c:"));
}

// The variable, and the program whose failure its last write explains.
struct Watched {
  const char* program;
  const char* expression;
};

class WatchTest : public testing::TestWithParam<Watched> {};

TEST_P(WatchTest, ReverseContinueLandsOnTheRacyWrite) {
  const Scratch scratch;
  const std::string bundle = FailingRun(scratch, GetParam().program);
  const int line = LineOf(GetParam().program, "RACY-WRITE");
  ASSERT_GT(line, 0);
  const std::string text =
      Gdb(bundle, {fmt::format("watch -location {}", GetParam().expression),
                   "reverse-continue", "info line *$pc", "frame"});
  EXPECT_THAT(text, HasSubstr("watchpoint"));
  EXPECT_THAT(text, HasSubstr(fmt::format("{}.c", GetParam().program)));
  EXPECT_THAT(text, HasSubstr(fmt::format("{}\t", line))) << text;
}

INSTANTIATE_TEST_SUITE_P(Programs, WatchTest,
                         testing::Values(Watched{"bank", "balance"},
                                         Watched{"order", "board"},
                                         Watched{"pfscan", "next_file"}),
                         [](const auto& parameter) {
                           return parameter.param.program;
                         });

}  // namespace
}  // namespace clew::e2e
