// Goal: a program that handles signals runs under the recorder as it does
// without, and what was recorded is solved and replayed.
// Method: a program that checks what a handler is given, and ends with 0.
#include <gtest/gtest.h>

#include "common/result.h"
#include "tests/e2e/clew_command.h"

namespace clew::e2e {
namespace {

class SignalsTest : public testing::TestWithParam<const char*> {};

TEST_P(SignalsTest, AreHandledRecordedSolvedAndReplayed) {
  const Scratch scratch;
  const std::string bundle = scratch.Path("b");
  // With a time limit, so that the recorder has a thread that watches it.
  const ProgramOutput recorded = Clew(
      {"record", "--timeout", "100", "-o", bundle, "--",
       Built("tests/recorder/programs/recorder_tracee_signals"), GetParam()});
  ASSERT_EQ(recorded.exit_status, kExitOk) << recorded.text;
  const ProgramOutput solved = ClewAtLeisure("solve", {bundle});
  ASSERT_EQ(solved.exit_status, kExitOk) << solved.text;
  const ProgramOutput replayed = Clew({"replay", "--check", "2", bundle});
  EXPECT_EQ(replayed.exit_status, kExitOk) << replayed.text;
}

INSTANTIATE_TEST_SUITE_P(Cases, SignalsTest,
                         testing::Values("aligned", "altstack", "together",
                                         "cancel", "process", "restarted",
                                         "interrupted"),
                         [](const auto& parameter) {
                           return std::string(parameter.param);
                         });

}  // namespace
}  // namespace clew::e2e
