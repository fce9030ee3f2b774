// Goal: the command that `record` prints repeats the run: in another folder,
// with nothing in the environment, from its program's name to its last
// instruction. What it cannot repeat it says.
// Method: the built program; the line that it printed, run by sh(1) under
// env(1) -i, on programs whose failure depends on the seed, on one that is
// named from its folder, and on one that looks at what it is started with.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "common/result.h"
#include "common/text/shell_quote.h"
#include "tests/e2e/clew_command.h"

namespace clew::e2e {
namespace {

using testing::HasSubstr;

constexpr std::string_view kBefore = "clew: to repeat this run: ";

// The command in what `record` printed, or empty.
std::string PrintedCommand(const std::string& text) {
  const size_t begin = text.find(kBefore);
  if (begin == text.npos) {
    return "";
  }
  const size_t command = begin + kBefore.size();
  return text.substr(command, text.find('\n', command) - command);
}

ProgramOutput RunElsewhere(const std::string& folder, const std::string& line) {
  std::filesystem::create_directories(folder);
  return Run({"env", "-i", "/bin/sh", "-c",
              "cd " + ShellQuote(folder) + " && " + line});
}

nlohmann::json Info(const std::string& bundle) {
  const ProgramOutput info = Clew({"info", "--json", bundle});
  EXPECT_EQ(info.exit_status, kExitOk) << info.text;
  return nlohmann::json::parse(info.text, nullptr, /*allow_exceptions=*/false);
}

TEST(RepeatTest, FailingRunsAreRepeatedByTheirPrintedCommand) {
  for (const char* program : {"bank", "racey", "order", "uaf"}) {
    const Scratch scratch;
    const ProgramOutput first = Clew(
        {"record", "--until-fail", "--seed", "20", "--cores", "3", "--quantum",
         "200", "-o", scratch.Path("fail.clew"), "--", Tracee(program)});
    ASSERT_EQ(first.exit_status, kExitFinding) << first.text;
    const std::string line = PrintedCommand(first.text);
    ASSERT_NE(line, "") << first.text;
    const ProgramOutput again = RunElsewhere(scratch.Path("else where"), line);
    EXPECT_EQ(again.exit_status, kExitFinding) << again.text;
    EXPECT_THAT(again.text, HasSubstr("it ended as the run that it repeats"));
    const auto one = Info(scratch.Path("fail.clew"));
    const auto two = Info(scratch.Path("else where/repeat.clew"));
    EXPECT_EQ(one["repeat"], line);
    for (const char* field : {"seed", "quantum_insns", "cores", "instructions",
                              "pt_bytes", "switches", "duration_ticks"}) {
      EXPECT_EQ(one[field], two[field]) << program << ": " << field;
    }
  }
}

// Its program prints what it was started with.
TEST(RepeatTest, ArgumentsEnvironmentAndFolderAreTheRecordedOnes) {
  const Scratch scratch;
  const std::string folder = scratch.Path("it's here");
  std::filesystem::create_directory(folder);
  const std::string script = "echo \"$PWD|$1|$VALUE|$(ulimit -s)\"; exit 3";
  const std::string record = ShellQuote(std::vector<std::string>{
      Binary(), "record", "--fail-on", "exit=3", "-o", "../fail.clew", "--",
      "sh", "-c", script, "sh", "two  words"});
  const ProgramOutput first =
      Shell("cd " + ShellQuote(folder) +
            " && ulimit -s 4096 && VALUE='a\n=b' exec " + record);
  ASSERT_EQ(first.exit_status, kExitFinding) << first.text;
  const std::string wanted = folder + "|two  words|a\n=b|4096\n";
  ASSERT_THAT(first.text, HasSubstr(wanted));
  const ProgramOutput again =
      RunElsewhere(scratch.Path("else"), PrintedCommand(first.text));
  EXPECT_EQ(again.exit_status, kExitFinding) << again.text;
  EXPECT_THAT(again.text, HasSubstr(wanted));
}

TEST(RepeatTest, ARunThatEndsOtherwiseIsSaidToBeNoRepetition) {
  const Scratch scratch;
  const std::string bundle = scratch.Path("fail.clew");
  const std::string flag = scratch.Path("flag");
  const ProgramOutput first =
      Clew({"record", "--fail-on", "exit=3", "-o", bundle, "--", "sh", "-c",
            "test -e " + ShellQuote(flag) + " || exit 3"});
  ASSERT_EQ(first.exit_status, kExitFinding) << first.text;
  std::ofstream(flag) << "set";
  const ProgramOutput again =
      RunElsewhere(scratch.Path("else"), PrintedCommand(first.text));
  EXPECT_EQ(again.exit_status, kExitOk) << again.text;
  EXPECT_THAT(again.text,
              HasSubstr("not repeated: that run failed: exit status 3"));
}

TEST(RepeatTest, WhatTheBundleSaysIsNotSaidAgain) {
  const Scratch scratch;
  const std::string bundle = scratch.Path("fail.clew");
  ASSERT_NO_FATAL_FAILURE(RecordFailure(bundle, "bank", 1));
  const ProgramOutput both = Clew({"record", "--repeat", bundle, "--seed", "7",
                                   "-o", scratch.Path("again.clew")});
  EXPECT_EQ(both.exit_status, kExitUsage) << both.text;
  EXPECT_THAT(both.text, HasSubstr("leave out --seed"));
}

}  // namespace
}  // namespace clew::e2e
