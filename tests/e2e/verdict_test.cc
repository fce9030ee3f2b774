// Goal: a recorded run whose cause the search may miss is not called
// impossible, nor does its solving end with an error; and where there is no
// answer, what stands against one is told, for people and as JSON. Method:
// recordings of programs that poll a flag for long, branch on racy values that
// are addresses, or hand values on through private memory, at timings that have
// misled the search. What is recorded happened.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "common/result.h"
#include "tests/e2e/clew_command.h"

namespace clew::e2e {
namespace {

struct VerdictCase {
  const char* name;
  std::vector<std::string> timing;
  std::vector<std::string> command;  // its first word is a test program
};
void PrintTo(const VerdictCase& c, std::ostream* out) { *out << c.name; }

class VerdictTest : public testing::TestWithParam<VerdictCase> {};

TEST_P(VerdictTest, WhatHappenedIsNotCalledImpossible) {
  const Scratch scratch;
  const std::string bundle = scratch.Path("b.clew");
  std::vector<std::string> record = {"record", "--until-fail", "30", "-o",
                                     bundle};
  const auto add = [&](const std::vector<std::string>& words) {
    record.insert(record.end(), words.begin(), words.end());
  };
  std::vector<std::string> command = GetParam().command;
  command[0] = Tracee(command[0]);
  add(GetParam().timing);
  add({"--"});
  add(command);
  const ProgramOutput recorded = Clew(record);
  ASSERT_TRUE(recorded.exit_status == 0 || recorded.exit_status == 1)
      << recorded.text;
  const ProgramOutput solved =
      Clew({"solve", "--json", "--time-limit", "6", bundle});
  ASSERT_TRUE(solved.exit_status == kExitOk || solved.exit_status == kExitLimit)
      << solved.text;
  const auto answer =
      nlohmann::json::parse(solved.text, nullptr, /*allow_exceptions=*/false);
  ASSERT_FALSE(answer.is_discarded()) << solved.text;
  fmt::print("{}: {}\n", GetParam().name, answer.value("verdict", ""));
  if (answer.value("verdict", "") == "unknown") {
    EXPECT_NE(answer.value("reason", ""), "");
    EXPECT_EQ(answer["engines"].size(), 2u);
    EXPECT_FALSE(answer["doubts"].empty() && answer["advice"].empty());
  }
}

INSTANTIATE_TEST_SUITE_P(
    Programs, VerdictTest,
    testing::Values(VerdictCase{"poll", {}, {"poll"}},
                    VerdictCase{"bank_none", {"--timing", "none"}, {"bank"}}),
    [](const auto& parameter) { return parameter.param.name; });

// In tools/test --all.
INSTANTIATE_TEST_SUITE_P(
    More, VerdictTest,
    testing::Values(VerdictCase{
        "racey_branches", {"--mtc-period", "0"}, {"racey_branches", "1000"}}),
    [](const auto& parameter) { return parameter.param.name; });

}  // namespace
}  // namespace clew::e2e
