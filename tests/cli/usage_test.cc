// Goal: the program's exit codes and help are what `clew help` says: usage
// errors exit 2 with one line, help exits 0 and names every code, every command
// shows an example, a result that cannot be written is not a success.
// Method: runs the built program.
#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "cli/run_program.h"

namespace clew::cli {
namespace {

class UsageTest : public testing::Test {
 protected:
  void SetUp() override {
    const char* build = std::getenv("CLEW_BINARY_DIR");
    if (build == nullptr) {
      GTEST_SKIP() << "run by ctest, which sets CLEW_BINARY_DIR";
    }
    clew_ = std::string(build) + "/bin/clew";
  }

  // Runs `clew <line>` by a shell, with both outputs in one.
  ProgramOutput Run(const std::string& line) const {
    return RunProgram({"sh", "-c", clew_ + " " + line + " 2>&1"})
        .value_or(ProgramOutput{.exit_status = -1, .text = ""});
  }

  // The names that the help text lists under "Subcommands:".
  std::vector<std::string> Commands() const {
    std::istringstream help(Run("help").text);
    std::vector<std::string> names;
    bool listed = false;
    for (std::string line; std::getline(help, line);) {
      if (listed && line.empty()) {
        break;
      }
      if (listed) {
        names.push_back(line.substr(2, line.find(' ', 2) - 2));
      }
      listed = listed || line == "Subcommands:";
    }
    return names;
  }

  std::string clew_;
};

TEST_F(UsageTest, ARequestThatMakesNoSenseExits2WithOneLine) {
  for (const char* line : {"", "frobnicate", "doctor --frobnicate",
                           "version extra", "help frobnicate"}) {
    const ProgramOutput output = Run(line);
    EXPECT_EQ(output.exit_status, 2) << line;
    EXPECT_EQ(output.text.substr(0, 6), "clew: ") << line;
    EXPECT_EQ(output.text.find('\n'), output.text.size() - 1) << output.text;
  }
}

TEST_F(UsageTest, HelpNamesEveryExitCode) {
  for (const char* line : {"help", "--help"}) {
    const ProgramOutput output = Run(line);
    EXPECT_EQ(output.exit_status, 0);
    for (const char* code : {"\n   0  ", "\n   1  ", "\n   2  ", "\n   3  ",
                             "\n   4  ", "\n   5  ", "\n  70  "}) {
      EXPECT_NE(output.text.find(code), std::string::npos) << code;
    }
  }
}

TEST_F(UsageTest, EveryCommandExplainsItselfWithAnExample) {
  EXPECT_GE(Commands().size(), 3u);
  for (const std::string& command : Commands()) {
    const ProgramOutput output = Run("help " + command);
    EXPECT_EQ(output.exit_status, 0) << command;
    EXPECT_EQ(output.text, Run(command + " --help").text);
    EXPECT_NE(output.text.find("Example"), std::string::npos) << command;
  }
}

TEST_F(UsageTest, AResultThatCannotBeWrittenIsNoSuccess) {
  const auto output =
      RunProgram({"sh", "-c", clew_ + " version 2>&1 >/dev/full"});
  ASSERT_TRUE(output.has_value());
  EXPECT_EQ(output->exit_status, 3);
  EXPECT_EQ(output->text,
            "clew: cannot write to standard output: No space left on device\n");
}

// CLEW_TEST_HAS_BPF: whether CMake built recorder/bpf.
TEST_F(UsageTest, WhatWasBuiltIsNotSaidToBeLeftOut) {
  const bool left_out =
      Run("version").text.find("left out: inputs by eBPF") != std::string::npos;
  EXPECT_EQ(left_out, !CLEW_TEST_HAS_BPF);
  const bool doctor_misses_it =
      Run("doctor").text.find("left out of this build") != std::string::npos;
  EXPECT_EQ(doctor_misses_it, !CLEW_TEST_HAS_BPF);
}

}  // namespace
}  // namespace clew::cli
