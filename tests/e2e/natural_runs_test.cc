// Goal: a correct program of one feature of the kernel runs under the recorder
// as it does without, and what was recorded is solved and replayed.
// Method: programs that check what the kernel tells them, and end with 0; one
// seed, three in tools/test --all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "tests/e2e/clew_command.h"

namespace clew::e2e {
namespace {

struct Feature {
  const char* program;
  const char* name;
};

using Parameter = std::tuple<Feature, int>;
class NaturalRunsTest : public testing::TestWithParam<Parameter> {};

TEST_P(NaturalRunsTest, EndAsWithoutRecorderAndAreSolvedAndReplayed) {
  const auto& [feature, seed] = GetParam();
  const Scratch scratch;
  const std::string program =
      Built(std::string("tests/recorder/programs/recorder_tracee_") +
            feature.program);
  EXPECT_EQ(e2e::Run({program, feature.name}).exit_status, 0);
  (void)FollowRun({program, feature.name}, seed, scratch.Path("b"));
}

std::string NameOfRun(const testing::TestParamInfo<Parameter>& parameter) {
  const auto& [feature, seed] = parameter.param;
  return std::string(feature.name) + "Seed" + std::to_string(seed);
}

constexpr Feature kFeatures[] = {
    {"answers", "numbers"},    {"answers", "rare"},
    {"futexes", "requeue"},    {"futexes", "compare_requeue"},
    {"futexes", "wake_op"},    {"futexes", "bits"},
    {"futexes", "owner"},      {"futexes", "unknown"},
    {"lives", "exits_first"},  {"lives", "is_joined"},
    {"lives", "is_cancelled"}, {"lives", "ends_in_handler"},
    {"lives", "jumps"},        {"lives", "own_words"},
    {"lives", "timed_join"},
};

INSTANTIATE_TEST_SUITE_P(Features, NaturalRunsTest,
                         testing::Combine(testing::ValuesIn(kFeatures),
                                          testing::Values(1)),
                         NameOfRun);

// In tools/test --all.
INSTANTIATE_TEST_SUITE_P(More, NaturalRunsTest,
                         testing::Combine(testing::ValuesIn(kFeatures),
                                          testing::Values(2, 3)),
                         NameOfRun);

TEST(RefusedRunsTest, AWaitForALockWithInheritanceIsRefusedInQemu) {
  const Scratch scratch;
  const ProgramOutput recorded = Clew(
      {"record", "--source", "qemu", "-o", scratch.Path("b"), "--",
       Built("tests/recorder/programs/recorder_tracee_futexes"), "contend"});
  EXPECT_EQ(recorded.exit_status, kExitEnvironment) << recorded.text;
  EXPECT_THAT(recorded.text, testing::HasSubstr("FUTEX_LOCK_PI"));
  EXPECT_THAT(recorded.text, testing::Not(testing::HasSubstr("hang")));
}

}  // namespace
}  // namespace clew::e2e
