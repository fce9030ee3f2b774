// Goal: code that a program makes while it runs, writes over and makes anew is
// decoded without a gap, solved and replayed. Method: the built program on one
// that makes code in all these ways, with three seeds; git's search by PCRE,
// which compiles the expression.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "common/os/child_process.h"
#include "common/result.h"
#include "tests/e2e/clew_command.h"

namespace clew::e2e {
namespace {

using testing::HasSubstr;

void ExpectNoLoss(const std::string& bundle) {
  const ProgramOutput info = Clew({"info", "--json", bundle});
  const auto summary = nlohmann::json::parse(info.text, nullptr, false);
  ASSERT_FALSE(summary.is_discarded()) << info.text;
  for (const auto& [name, count] : summary["loss"].items()) {
    EXPECT_EQ(count, 0u) << name;
  }
}

class GeneratedCodeTest : public testing::TestWithParam<int> {};

TEST_P(GeneratedCodeTest, IsDecodedSolvedAndReplayed) {
  const Scratch scratch;
  EXPECT_THAT(FollowRun({Tracee("jit")}, GetParam(), scratch.Path("b.clew")),
              HasSubstr("protected 1, self-writing 1, sum right 1"));
  ExpectNoLoss(scratch.Path("b.clew"));
}

INSTANTIATE_TEST_SUITE_P(Seeds, GeneratedCodeTest, testing::Values(1, 2, 3));

// Without them nothing tells which code an instruction is of.
TEST(GeneratedCode, ThatIsReplacedNeedsTimingPackets) {
  const Scratch scratch;
  const ProgramOutput recorded =
      Clew({"record", "--timing", "none", "-o", scratch.Path("b.clew"), "--",
            Tracee("jit")});
  EXPECT_EQ(recorded.exit_status, kExitEnvironment);
  EXPECT_THAT(recorded.text, HasSubstr("replaced code at 0x"));
}

TEST(GeneratedCode, OfAnExpressionThatGitSearchesFor) {
  const std::string git = FindProgram("git").value_or("");
  if (git.empty()) {
    GTEST_SKIP() << "git is not installed";
  }
  const Scratch scratch;
  ASSERT_EQ(Shell("seq 1 500 > " + scratch.Path("text")).exit_status, 0);
  EXPECT_THAT(FollowRun({git, "-C", scratch.Path(""), "grep", "--no-index",
                         "--threads=1", "-cP", "(4|2)\\d*7$", "text"},
                        1, scratch.Path("b.clew")),
              HasSubstr("text:26\n"));
  ExpectNoLoss(scratch.Path("b.clew"));
}

}  // namespace
}  // namespace clew::e2e
