// Goal: a process that has the program's memory (vfork, clone with CLONE_VM)
// does what it does natively, what it writes there the program has, in the
// recording and in its replay, and its own end is nobody else's.
// Method: programs/vforks.c, of which each output is known, by turns and by
// stepping.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/e2e/clew_command.h"

namespace clew::e2e {
namespace {

using testing::HasSubstr;

struct VforkCase {
  const char* what;
  const char* output;
  const char* end = "exit status 0";
};

void PrintTo(const VforkCase& c, std::ostream* out) { *out << c.what; }

class VforkTest
    : public testing::TestWithParam<std::tuple<VforkCase, const char*>> {};

TEST_P(VforkTest, IsFollowedInTheProgramsMemory) {
  const auto& [what, source] = GetParam();
  const Scratch scratch;
  const std::string bundle = scratch.Path("b.clew");
  const ProgramOutput recorded =
      Clew({"record", "--source", source, "--seed", "1", "-o", bundle, "--",
            Tracee("vforks"), what.what});
  EXPECT_THAT(recorded.text, HasSubstr(what.output));
  EXPECT_THAT(recorded.text, HasSubstr(what.end));
  EXPECT_THAT(recorded.text, Not(HasSubstr("otherwise than the kernel")));
  const ProgramOutput solved = ClewAtLeisure("solve", {bundle});
  EXPECT_EQ(solved.exit_status, kExitOk) << solved.text;
  EXPECT_THAT(solved.text, HasSubstr("memory-exact"));
  EXPECT_THAT(solved.text, Not(HasSubstr("  race  "))) << "it is waited for";
  const ProgramOutput replayed = Clew({"replay", "--once", bundle});
  EXPECT_EQ(replayed.exit_status, kExitOk) << replayed.text;
  EXPECT_THAT(replayed.text, HasSubstr(what.output));
  EXPECT_THAT(replayed.text, HasSubstr(what.end));
}

INSTANTIATE_TEST_SUITE_P(
    Sources, VforkTest,
    testing::Combine(
        testing::Values(
            VforkCase{"killed", "status 109, seen 0, then 10, read \"\""},
            VforkCase{"faults", "status 111, seen 0, then 10, read \"\""},
            VforkCase{"aborts", "status 106, seen 0, then 10, read \"\""},
            VforkCase{"handles", "status 10, seen 10, then 10, read \"\""},
            VforkCase{"defaults", "status 0, seen 5, then 10, read \"\""},
            VforkCase{"waits", "status 114, seen 0, then 10, read \"\""},
            VforkCase{"cannot_run", "status 0, seen 2, then 10, read \"\""},
            VforkCase{"vforks", "status 14, seen 4, then 10, read \"\""},
            VforkCase{"forks", "status 7, seen 0, then 10, read \"\""},
            VforkCase{"writes", "status 0, seen 0, then 10, read \"hello\""},
            VforkCase{"sleeps", "status 3"},
            VforkCase{"exit_meanwhile", "", "exit status 5"},
            VforkCase{"abort_meanwhile", "", "signal 6 (SIGABRT)"},
            VforkCase{"exec_meanwhile", "another program"}),
        testing::Values("tracer", "step")),
    [](const auto& test) {
      return std::string(std::get<0>(test.param).what) + "_" +
             std::get<1>(test.param);
    });

TEST(VforkCloneTest, BothRunAtOnce) {
  const Scratch scratch;
  EXPECT_THAT(FollowRun({Tracee("vforks"), "clone"}, 1, scratch.Path("b.clew")),
              HasSubstr("status 9, seen 2"));
}

}  // namespace
}  // namespace clew::e2e
