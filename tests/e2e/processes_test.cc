// Goal: a program that makes child processes is recorded without them, solved
// and replayed; the children do what they would do unrecorded. A program that
// replaces itself is recorded from its new start. Method: the built program on
// a program that checks its children, and on shells, with one seed, three
// in tools/test --all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/e2e/clew_command.h"

namespace clew::e2e {
namespace {

using testing::HasSubstr;

class ProcessesTest : public testing::TestWithParam<int> {
 protected:
  // Records, solves and replays `command`; returns the program's output.
  std::string Follow(const std::vector<std::string>& command) {
    return FollowRun(command, GetParam(), scratch_.Path("run.clew"));
  }

  const Scratch scratch_;
};

TEST_P(ProcessesTest, TheParentIsRecordedAndItsChildrenAreLeftAlone) {
  EXPECT_THAT(
      Follow({Tracee("processes")}),
      HasSubstr("spawned 0, exec 0, no exec 42, worker 120, count 120"));
}

TEST_P(ProcessesTest, AShellRunsItsPipeline) {
  EXPECT_THAT(Follow({"sh", "-c", "echo one two | wc -w | sed s/2/two/"}),
              HasSubstr("two"));
}

// Each of these starts the recording over: the program itself, env, a script.
TEST_P(ProcessesTest, AnotherProgramIsRecordedFromItsStart) {
  const std::string script = scratch_.Path("script");
  std::ofstream(script) << "#!/bin/sh -e\n"
                        << "exec " << Tracee("processes") << "\n";
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  const std::string output =
      Follow({Tracee("processes"), "env", "A=B", script});
  EXPECT_THAT(output, HasSubstr("worker 120, count 120"));
  const ProgramOutput info = Clew({"info", scratch_.Path("run.clew")});
  EXPECT_THAT(info.text, HasSubstr("processes"));
}

INSTANTIATE_TEST_SUITE_P(Seeds, ProcessesTest, testing::Values(1));

// In tools/test --all.
INSTANTIATE_TEST_SUITE_P(More, ProcessesTest, testing::Values(2, 3));

}  // namespace
}  // namespace clew::e2e
