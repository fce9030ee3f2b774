// Goal: runs of real programs that do not fail are recorded without loss,
// decoded without gaps, solved, and replayed to the recorded exit status with
// the recorded output, byte for byte.
// Method: Debian's packages on generated input; a program that is not installed
// is skipped with that reason.
#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <ostream>

#include "common/os/child_process.h"
#include "common/result.h"
#include "tests/e2e/clew_command.h"
#include "tests/support/random_lines.h"
#include "tests/support/read_text.h"
#include "tests/support/write_text.h"

namespace clew::e2e {
namespace {

using test::ReadText;

// "INPUT" stands for the file of generated input.
struct Real {
  const char* name;
  std::vector<std::string> command;
};

void PrintTo(const Real& real, std::ostream* out) { *out << real.name; }

// What the program wrote to stderr before clew wrote its line. (Those that do
// write there flush what they wrote to stdout after it, at exit.)
std::string OwnStderr(const std::string& text) {
  return text.substr(0, text.find("clew: "));
}

class RealProgramTest : public testing::TestWithParam<Real> {
 protected:
  // The command with the input's path, and the path of the program itself.
  std::vector<std::string> Command() {
    std::vector<std::string> command = GetParam().command;
    command[0] = FindProgram(command[0]).value_or("");
    for (std::string& argument : command) {
      argument = argument == "INPUT" ? scratch_.Path("input") : argument;
    }
    if (command[0].empty()) {
      command[0] = Tracee(GetParam().command[0]);
    }
    return command;
  }

  Scratch scratch_;
};

TEST_P(RealProgramTest, ReplaysToTheRecordedOutput) {
  const std::vector<std::string> command = Command();
  if (access(command[0].c_str(), X_OK) != 0) {
    GTEST_SKIP() << GetParam().command[0] << " is not installed";
  }
  test::WriteText(scratch_.Path("input"), test::RandomLines(300'000));
  const std::string bundle = scratch_.Path("run.clew");
  std::vector<std::string> record = {"record", "-o", bundle, "--"};
  record.insert(record.end(), command.begin(), command.end());
  const ProgramOutput recorded = ClewInto(scratch_.Path("recorded"), record);
  ASSERT_EQ(recorded.exit_status, kExitOk) << recorded.text;

  const ProgramOutput info = Clew({"info", "--json", bundle});
  const auto summary = nlohmann::json::parse(info.text, nullptr, false);
  ASSERT_FALSE(summary.is_discarded()) << info.text;
  for (const char* loss : {"gaps", "instructions_without_thread", "aux_bytes",
                           "records", "inputs_unknown"}) {
    EXPECT_EQ(summary["loss"].value(loss, uint64_t{1}), 0u) << loss;
  }

  const ProgramOutput solved = ClewAtLeisure("solve", {bundle});
  ASSERT_EQ(solved.exit_status, kExitOk) << solved.text;
  const ProgramOutput replayed =
      ClewInto(scratch_.Path("replayed"), {"replay", "--once", bundle});
  EXPECT_EQ(replayed.exit_status, kExitOk) << replayed.text;
  EXPECT_TRUE(ReadText(scratch_.Path("replayed")) ==
              OwnStderr(recorded.text) + ReadText(scratch_.Path("recorded")))
      << "the output differs from the recorded one";
}

INSTANTIATE_TEST_SUITE_P(
    Programs, RealProgramTest,
    testing::Values(
        Real{"pbzip2", {"pbzip2", "-p4", "-b1", "-1", "-c", "INPUT"}},
        Real{"pigz", {"pigz", "-p4", "-c", "INPUT"}},
        Real{"xz", {"xz", "-T4", "-1", "--block-size=65536", "-c", "INPUT"}},
        Real{"sort", {"sort", "--parallel=4", "INPUT"}},
        Real{"sqlite", {"sqlite_threads"}},
        // The input as pixels, four small frames on as many threads.
        Real{"x264",
             {"x264", "--quiet", "--threads", "4", "--frames", "4",
              "--no-progress", "--demuxer", "raw", "--input-res", "32x32",
              "--muxer", "raw", "-o", "-", "INPUT"}}),
    [](const auto& parameter) { return parameter.param.name; });

}  // namespace
}  // namespace clew::e2e
