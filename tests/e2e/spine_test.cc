// Goal: each small program of tests/programs goes the whole way: a failing run
// is found and recorded, read without gaps or errors, solved, and replayed 20
// times out of 20.
// Method: the built program, as a user would run it.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <ostream>

#include "common/result.h"
#include "tests/e2e/clew_command.h"

namespace clew::e2e {
namespace {

struct FailingProgram {
  const char* program;
  const char* failure;  // as `clew info --json` calls its kind
};

void PrintTo(const FailingProgram& failing, std::ostream* out) {
  *out << failing.program;
}

class SpineTest : public testing::TestWithParam<FailingProgram> {};

std::vector<std::string> RecordArguments(const FailingProgram& failing,
                                         const std::string& bundle) {
  std::vector<std::string> arguments = {"record", "--until-fail", "-o", bundle};
  if (std::string(failing.failure) == "hang") {
    arguments.insert(arguments.end(), {"--timeout", "100"});
  }
  arguments.insert(arguments.end(), {"--", Tracee(failing.program)});
  return arguments;
}

TEST_P(SpineTest, RecordInfoDecodeSolveReplay) {
  const Scratch scratch;
  const std::string bundle = scratch.Path("fail.clew");
  const ProgramOutput recorded = Clew(RecordArguments(GetParam(), bundle));
  ASSERT_EQ(recorded.exit_status, kExitFinding) << recorded.text;
  ASSERT_TRUE(std::filesystem::is_directory(bundle));
  EXPECT_FALSE(std::filesystem::exists(bundle + ".partial"));

  const ProgramOutput info = Clew({"info", "--json", bundle});
  ASSERT_EQ(info.exit_status, kExitOk) << info.text;
  const auto summary =
      nlohmann::json::parse(info.text, nullptr, /*allow_exceptions=*/false);
  ASSERT_FALSE(summary.is_discarded()) << info.text;
  EXPECT_EQ(summary.value("/failure/kind"_json_pointer, ""),
            GetParam().failure);

  const ProgramOutput decoded =
      ClewInto(scratch.Path("blocks.txt"), {"decode", bundle});
  ASSERT_EQ(decoded.exit_status, kExitOk) << decoded.text;
  EXPECT_GT(std::filesystem::file_size(scratch.Path("blocks.txt")), 10'000u);

  const ProgramOutput solved = ClewAtLeisure("solve", {bundle});
  ASSERT_EQ(solved.exit_status, kExitOk) << solved.text;
  ASSERT_TRUE(std::filesystem::exists(bundle + "/schedule.pb"));

  const ProgramOutput replayed = Clew({"replay", "--check", "20", bundle});
  EXPECT_EQ(replayed.exit_status, kExitOk) << replayed.text;
}

INSTANTIATE_TEST_SUITE_P(Programs, SpineTest,
                         testing::Values(FailingProgram{"bank", "signal"},
                                         FailingProgram{"pfscan", "signal"},
                                         FailingProgram{"deadlock", "hang"}),
                         [](const auto& parameter) {
                           return parameter.param.program;
                         });

// In tools/test --all.
INSTANTIATE_TEST_SUITE_P(More, SpineTest,
                         testing::Values(FailingProgram{"racey", "signal"},
                                         FailingProgram{"bbuf", "signal"},
                                         FailingProgram{"sbuf", "signal"},
                                         FailingProgram{"order", "signal"},
                                         FailingProgram{"uaf", "signal"}),
                         [](const auto& parameter) {
                           return parameter.param.program;
                         });

}  // namespace
}  // namespace clew::e2e
