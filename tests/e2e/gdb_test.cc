// Goal: stock gdb on a replayed failing run shows the failure, every thread,
// and by a watchpoint and reverse-continue the write that caused it, at the
// line of the source that is marked RACY-WRITE. Method: gdb in batch mode
// through `clew replay --batch`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <ostream>
#include <regex>
#include <set>

#include "common/result.h"
#include "tests/e2e/clew_command.h"

namespace clew::e2e {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

// Records and solves `program`; the bundle's path, empty on failure.
std::string FailingRun(const Scratch& scratch, const std::string& program,
                       const std::string& source = "qemu") {
  const std::string bundle = scratch.Path("fail.clew");
  const ProgramOutput recorded =
      Clew({"record", "--source", source, "--until-fail", "-o", bundle, "--",
            Tracee(program)});
  EXPECT_EQ(recorded.exit_status, kExitFinding) << recorded.text;
  const ProgramOutput solved = ClewAtLeisure("solve", {bundle});
  EXPECT_EQ(solved.exit_status, kExitOk) << solved.text;
  return bundle;
}

// What gdb prints for these commands at the end of the replay, after where that
// is.
std::string Gdb(const std::string& bundle,
                const std::vector<std::string>& commands) {
  std::vector<std::string> arguments = {"replay", "--batch", "--quiet", "--at",
                                        "end"};
  for (const std::string& command : commands) {
    arguments.insert(arguments.end(), {"-ex", command});
  }
  arguments.push_back(bundle);
  return Clew(arguments).text;
}

int CountMatches(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  return static_cast<int>(
      std::distance(std::sregex_iterator(text.begin(), text.end(), regex), {}));
}

TEST(GdbTest, EveryThreadHasABacktraceToItsStart) {
  const Scratch scratch;
  const std::string bundle = FailingRun(scratch, "pfscan");
  const std::string text = Gdb(bundle, {"thread apply all backtrace"});
  const int threads = CountMatches(text, "\nThread [0-9]+ \\(Thread ");
  EXPECT_GE(threads, 2) << text;
  EXPECT_EQ(
      CountMatches(text, "#[0-9]+ +(0x[0-9a-f]+ in )?(main|clone3?) \\(\\) "),
      threads)
      << text;
  EXPECT_THAT(text, ContainsRegex("#0 .*CountWord .*pfscan.c:"));
}

// To go back in time, a replay holds all of the recording.
TEST(GdbTest, AReplayThatWouldHoldTooMuchNamesItsOwnOption) {
  const Scratch scratch;
  const std::string bundle = FailingRun(scratch, "pfscan");
  const ProgramOutput limited =
      Clew({"replay", "--batch", "--tape-items", "100", bundle});
  EXPECT_EQ(limited.exit_status, kExitLimit) << limited.text;
  EXPECT_THAT(limited.text, HasSubstr("more than 100 recorded items"));
  EXPECT_THAT(limited.text, HasSubstr("raise the limit with --tape-items"));
  const ProgramOutput replayed =
      Clew({"replay", "--batch", "--tape-items", "100000000", "-ex",
            "backtrace", bundle});
  EXPECT_EQ(replayed.exit_status, kExitOk) << replayed.text;
}

// ld.so names libstdc++ by a link to its file, and so does gdb.
TEST(GdbTest, FramesOfTheCxxLibraryHaveNames) {
  const Scratch scratch;
  const std::string bundle = FailingRun(scratch, "tickets");
  const std::string text = Gdb(bundle, {"backtrace", "info sharedlibrary"});
  EXPECT_THAT(text, ContainsRegex("#[0-9]+ .* in std::terminate\\(\\) \\(\\)"));
  EXPECT_THAT(text, ContainsRegex("#[0-9]+ .* in __cxa_throw \\(\\)"));
  EXPECT_THAT(text, ContainsRegex("#[0-9]+ .*Roll::Take .*tickets.cc:"));
  EXPECT_THAT(text, ContainsRegex("#[0-9]+ .* in (start_thread|clone3?) "));
  EXPECT_THAT(text, ContainsRegex("Yes .*/libstdc\\+\\+.so.6\n"));
  EXPECT_EQ(CountMatches(text, "\n +No +/"), 0) << text;
}

// A link that the program chose, neither the file's name nor its DT_SONAME.
TEST(GdbTest, AFrameOfALibraryThatWasOpenedByALinkHasItsName) {
  const Scratch scratch;
  const std::string bundle = FailingRun(scratch, "visitor");
  const std::string text = Gdb(bundle, {"backtrace", "info sharedlibrary"});
  EXPECT_THAT(text, ContainsRegex("#[0-9]+ .* in Visit .*visit.c:"));
  EXPECT_THAT(text, ContainsRegex("Yes .*/libvisit.so\n"));
}

// The reason first, in the words of the program, and nothing of gdb's own.
TEST(GdbTest, OpensWithTheReasonOfTheFailure) {
  const Scratch scratch;
  const std::string bundle = FailingRun(scratch, "pfscan");
  const std::string text = Clew({"replay", "--batch", bundle}).text;
  EXPECT_THAT(
      text, ContainsRegex("^thread [0-9]+ \"pfscan\" \\(tid [0-9]+\\) failed: "
                          "signal 11 \\(SIGSEGV\\), read of 0x0, where nothing "
                          "is mapped, at 0x[0-9a-f]+\n"
                          "position ([0-9]+) of [0-9]+, the end\n"
                          "#0  CountWord .*pfscan.c:[0-9]+\n"));
  EXPECT_THAT(text, Not(HasSubstr("warning")));
  EXPECT_THAT(text, Not(HasSubstr("Reading")));
}

// A seek before the library is loaded and the threads are made, and back; gdb
// is told nothing else.
TEST(GdbTest, ASeekLooksLikeAStop) {
  const Scratch scratch;
  const std::string bundle = FailingRun(scratch, "tickets");
  const std::vector<std::string> looks = {"backtrace", "info registers rip",
                                          "info threads", "info sharedlibrary"};
  std::vector<std::string> commands = {"monitor seek start"};
  commands.insert(commands.end(), looks.begin(), looks.end());
  commands.emplace_back("echo -- there\\n");
  commands.emplace_back("monitor seek end");
  commands.insert(commands.end(), looks.begin(), looks.end());
  const std::string text = Gdb(bundle, commands);
  const size_t half = text.find("-- there");
  ASSERT_NE(half, std::string::npos) << text;
  const std::string start = text.substr(text.find("at 0 of"), half);
  EXPECT_THAT(start, ContainsRegex("#0 .* in _start \\(\\) from .*ld-linux"));
  EXPECT_THAT(start, ContainsRegex("rip +0x[0-9a-f]+ +0x[0-9a-f]+ <_start>"));
  EXPECT_EQ(CountMatches(start, "\n[* ] +[0-9]+ +Thread [0-9]+ "), 1) << start;
  EXPECT_EQ(CountMatches(start, "\n0x[0-9a-f]+ .*target:"), 1) << start;
  const std::string end = text.substr(half);
  EXPECT_THAT(end, ContainsRegex("#[0-9]+ .*Roll::Take .*tickets.cc:"));
  EXPECT_THAT(end,
              ContainsRegex("rip +0x[0-9a-f]+ +0x[0-9a-f]+ <__pthread_kill"));
  EXPECT_GE(CountMatches(end, "\n[* ] +[0-9]+ +Thread [0-9]+ "), 2) << end;
  EXPECT_GE(CountMatches(end, "\n0x[0-9a-f]+ .*target:"), 4) << end;
}

TEST(GdbTest, TheFailureComesAgainAfterAStepBack) {
  const Scratch scratch;
  const std::string bundle = FailingRun(scratch, "pfscan");
  const std::string text = Gdb(bundle, {"reverse-stepi", "continue"});
  EXPECT_THAT(text, HasSubstr("received signal SIGSEGV")) << text;
}

// Thread-local variables by name, without libthread_db: the stub finds them.
TEST(GdbTest, EveryThreadShowsItsOwnThreadLocalVariables) {
  const Scratch scratch;
  const std::string bundle = FailingRun(scratch, "handler");
  const std::string text =
      Gdb(bundle, {"thread apply all -q print mine",
                   "thread apply all -q print (int) errno",
                   "thread apply all -q print &mine", "reverse-stepi"});
  EXPECT_EQ(CountMatches(text, "\\$[0-9]+ = 42\n"), 1) << text;
  EXPECT_EQ(CountMatches(text, "\\$[0-9]+ = 7\n"), 1) << text;
  EXPECT_EQ(CountMatches(text, "\\$[0-9]+ = 34\n"), 1) << text;  // ERANGE
  EXPECT_EQ(CountMatches(text, "\\$[0-9]+ = 2\n"), 1) << text;   // ENOENT
  EXPECT_EQ(CountMatches(text, "\\(volatile int \\*\\) 0x[0-9a-f]+"), 2)
      << text;
}

// Backwards, forwards and by a step, at the handler's very first instruction,
// with the registers and the frame that the kernel gave it.
TEST(GdbTest, ABreakpointStopsAtTheStartOfASignalHandler) {
  const Scratch scratch;
  const std::string bundle = FailingRun(scratch, "handler");
  const std::vector<std::string> looks = {"print $pc == (long) &Handle",
                                          "print $rdi", "backtrace",
                                          "monitor position"};
  std::vector<std::string> commands = {"break *Handle", "reverse-continue"};
  commands.insert(commands.end(), looks.begin(), looks.end());
  commands.insert(commands.end(), {"monitor seek start", "continue"});
  commands.insert(commands.end(), looks.begin(), looks.end());
  commands.insert(commands.end(), {"reverse-stepi", "stepi"});
  commands.insert(commands.end(), looks.begin(), looks.end());
  const std::string text = Gdb(bundle, commands);
  EXPECT_EQ(CountMatches(text, "hit Breakpoint 1, Handle \\("), 3) << text;
  EXPECT_EQ(CountMatches(text, "\\$[0-9]+ = 1\n"), 3) << text;   // at its start
  EXPECT_EQ(CountMatches(text, "\\$[0-9]+ = 10\n"), 3) << text;  // SIGUSR1
  EXPECT_EQ(CountMatches(text, "#1  <signal handler called>"), 3) << text;
  EXPECT_EQ(CountMatches(text, "#[0-9]+ +0x[0-9a-f]+ in Work \\("), 3) << text;
  const std::regex position("\n([0-9]+ of [0-9]+)\n");
  std::set<std::string> positions;
  for (std::sregex_iterator at(text.begin(), text.end(), position), none;
       at != none; ++at) {
    positions.insert((*at)[1]);
  }
  EXPECT_EQ(positions.size(), 1u) << text;
}

// The variable, and the program whose failure its last write explains.
struct Watched {
  const char* program;
  const char* expression;
  const char* source = "qemu";

  std::string TestName() const {
    std::string name = program;
    std::ranges::replace(name, '/', '_');
    return name;
  }
};

void PrintTo(const Watched& watched, std::ostream* out) {
  *out << watched.program;
}

class WatchTest : public testing::TestWithParam<Watched> {};

TEST_P(WatchTest, ReverseContinueLandsOnTheRacyWrite) {
  const Scratch scratch;
  const std::string bundle =
      FailingRun(scratch, GetParam().program, GetParam().source);
  const int line = LineOf(GetParam().program, "RACY-WRITE");
  ASSERT_GT(line, 0);
  const std::string text =
      Gdb(bundle, {fmt::format("watch -location {}", GetParam().expression),
                   "reverse-continue", "info line *$pc"});
  EXPECT_THAT(text, HasSubstr("hit Hardware watchpoint"));
  EXPECT_THAT(text, ContainsRegex(fmt::format("\nLine {} of \"[^\"]*/{}.c\"",
                                              line, GetParam().program)));
}

INSTANTIATE_TEST_SUITE_P(Programs, WatchTest,
                         testing::Values(Watched{"bank", "balance"}),
                         [](const auto& test) {
                           return test.param.TestName();
                         });

// In tools/test --all: vectors of 256 and 512 bits, and a fused sum, too.
INSTANTIATE_TEST_SUITE_P(
    More, WatchTest,
    testing::Values(Watched{"order", "board"}, Watched{"pfscan", "next_file"},
                    Watched{"vector_total", "total[3]", "step"},
                    Watched{"wide_total", "total[3]", "step"},
                    Watched{"wide/dot_product", "sum", "step"}),
    [](const auto& test) { return test.param.TestName(); });

}  // namespace
}  // namespace clew::e2e
