#include "tests/e2e/clew_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/report.h"
#include "common/check.h"
#include "common/result.h"
#include "common/text/shell_quote.h"

namespace clew::e2e {
namespace {

// ctest sets these; without it nothing is found.
std::string Folder(const char* variable) {
  const char* folder = std::getenv(variable);
  CLEW_CHECK(folder != nullptr, "run by ctest, which sets {}", variable);
  return folder;
}

// `script` sees `arguments` as "$@".
ProgramOutput RunScript(const std::string& script,
                        const std::vector<std::string>& arguments,
                        int limit_s) {
  std::vector<std::string> line = {
      "sh", "-c", script, "sh", "timeout", "-k", "2", fmt::to_string(limit_s)};
  line.insert(line.end(), arguments.begin(), arguments.end());
  const auto output = cli::RunProgram(line);
  return output ? *output : ProgramOutput{-1, output.error().message};
}

// Records by the source that CLEW_TEST_SOURCE says, where the test says none.
void AddSource(std::vector<std::string>& arguments) {
  const char* const source = std::getenv("CLEW_TEST_SOURCE");
  const bool is_said =
      std::ranges::any_of(arguments, [](const std::string& argument) {
        return argument == "--source" || argument == "--repeat";
      });
  if (source != nullptr && arguments.at(0) == "record" && !is_said) {
    arguments.insert(arguments.begin() + 1, {"--source", source});
  }
}

void AddProgram(std::vector<std::string>& arguments) {
  AddSource(arguments);
  arguments.insert(arguments.begin(), Binary());
  std::printf("$ %s\n", ShellQuote(arguments).c_str());
  std::fflush(stdout);
}

}  // namespace

ProgramOutput Run(const std::vector<std::string>& arguments, int limit_s) {
  return RunScript("exec \"$@\" 2>&1", arguments, limit_s);
}

ProgramOutput Shell(const std::string& line) { return Run({"sh", "-c", line}); }

std::string Built(const std::string& path) {
  return Folder("CLEW_BINARY_DIR") + "/" + path;
}

std::string Binary() { return Built("bin/clew"); }

ProgramOutput Clew(std::vector<std::string> arguments) {
  AddProgram(arguments);
  return Run(arguments);
}

ProgramOutput ClewInto(const std::string& file,
                       std::vector<std::string> arguments) {
  AddProgram(arguments);
  return RunScript("exec \"$@\" 2>&1 >" + ShellQuote(file), arguments,
                   kLimitSeconds);
}

ProgramOutput ClewAtLeisure(const std::string& verb,
                            const std::vector<std::string>& arguments) {
  std::vector<std::string> all = {verb, "--time-limit",
                                  std::to_string(kOwnLimitSeconds)};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return Clew(all);
}

void ExpectSolvedAndReplayed(const std::string& bundle, const char* told) {
  const ProgramOutput solved = ClewAtLeisure("solve", {bundle});
  EXPECT_EQ(solved.exit_status, kExitOk) << solved.text;
  EXPECT_THAT(solved.text, testing::HasSubstr("witness found"));
  EXPECT_THAT(solved.text, testing::HasSubstr(told));
  const ProgramOutput replayed = Clew({"replay", "--check", "20", bundle});
  EXPECT_EQ(replayed.exit_status, kExitOk) << replayed.text;
}

std::string WhyNoBpf() {
  const ProgramOutput asked = Clew({"doctor", "--json"});
  const auto report = nlohmann::json::parse(asked.text, nullptr, false);
  if (!report.is_object()) {
    return "clew doctor: " + asked.text;
  }
  for (const auto& check : report["checks"]) {
    if (check["name"] == "bpf_inputs") {
      return check["ok"].get<bool>() ? "" : check["found"].get<std::string>();
    }
  }
  return "this build has no eBPF";
}

std::string Tracee(const std::string& name) {
  return Built("tests/programs/" + name);
}

void RecordFailure(const std::string& bundle, const std::string& program,
                   int seed, const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {
      "record", "--until-fail", "--seed", std::to_string(seed), "-o", bundle};
  if (program == "deadlock") {
    command.insert(command.end(), {"--timeout", "100"});
  }
  command.insert(command.end(), {"--", Tracee(program)});
  command.insert(command.end(), arguments.begin(), arguments.end());
  const ProgramOutput recorded = Clew(command);
  ASSERT_EQ(recorded.exit_status, kExitFinding) << recorded.text;
}

std::string FollowRun(const std::vector<std::string>& command, int seed,
                      const std::string& bundle) {
  std::vector<std::string> record = {"record", "--seed", std::to_string(seed),
                                     "-o",     bundle,   "--"};
  record.insert(record.end(), command.begin(), command.end());
  const ProgramOutput recorded = Clew(record);
  EXPECT_EQ(recorded.exit_status, kExitOk) << recorded.text;
  EXPECT_THAT(recorded.text,
              testing::HasSubstr("did not fail (exit status 0)"));
  const ProgramOutput solved = ClewAtLeisure("solve", {bundle});
  EXPECT_EQ(solved.exit_status, kExitOk) << solved.text;
  EXPECT_THAT(solved.text, testing::HasSubstr("memory-exact"));
  const ProgramOutput replayed = Clew({"replay", "--once", bundle});
  EXPECT_EQ(replayed.exit_status, kExitOk) << replayed.text;
  EXPECT_THAT(replayed.text, testing::HasSubstr("exit status 0"));
  return recorded.text;
}

int LineOf(const std::string& name, const std::string& marker) {
  std::ifstream source(Folder("CLEW_SOURCE_DIR") + "/tests/programs/" + name +
                       ".c");
  int number = 0;
  for (std::string line; std::getline(source, line);) {
    ++number;
    if (line.find(marker) != std::string::npos) {
      return number;
    }
  }
  return 0;
}

Scratch::Scratch() : failed_before_(testing::Test::HasFailure()) {
  root_ = testing::TempDir() + "clew-e2e-XXXXXX";
  CLEW_CHECK(mkdtemp(root_.data()) != nullptr, "no directory {}", root_);
}

Scratch::~Scratch() {
  if (kept_ || (testing::Test::HasFailure() && !failed_before_)) {
    std::printf("kept: %s\n", root_.c_str());
    return;
  }
  std::error_code ignored;  // leftovers in /tmp do not fail the test
  std::filesystem::remove_all(root_, ignored);
}

}  // namespace clew::e2e
