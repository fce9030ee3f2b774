// Goal: who has a lock with priority inheritance, who waits for it and who is
// next is followed as the kernel had it.
// Method: programs/inherited.c until an update that was not made under the lock
// is lost: solved, with that race named, and replayed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/e2e/clew_command.h"

namespace clew::e2e {
namespace {

using testing::HasSubstr;

class InheritedLocksTest
    : public testing::TestWithParam<std::vector<std::string>> {};

TEST_P(InheritedLocksTest, AreFollowed) {
  const Scratch scratch;
  const std::string bundle = scratch.Path("b.clew");
  std::vector<std::string> words = {"record", "--until-fail", "-o", bundle};
  words.insert(words.end(), GetParam().begin(), GetParam().end());
  words.insert(words.end(), {"--", Tracee("inherited")});
  const ProgramOutput recorded = Clew(words);
  ASSERT_EQ(recorded.exit_status, kExitFinding) << recorded.text;
  EXPECT_THAT(recorded.text, HasSubstr("SIGABRT"));
  const ProgramOutput solved = ClewAtLeisure("solve", {bundle});
  EXPECT_EQ(solved.exit_status, kExitOk) << solved.text;
  EXPECT_THAT(solved.text, HasSubstr("at \"raised\", \"Forget\""));
  const ProgramOutput replayed = Clew({"replay", "--check", "3", bundle});
  EXPECT_EQ(replayed.exit_status, kExitOk) << replayed.text;
}

INSTANTIATE_TEST_SUITE_P(Sources, InheritedLocksTest,
                         testing::Values(std::vector<std::string>{"--seed",
                                                                  "1"},
                                         std::vector<std::string>{"--free"}),
                         [](const auto& test) {
                           return std::string(test.param.size() == 1 ? "free"
                                                                     : "turns");
                         });

}  // namespace
}  // namespace clew::e2e
