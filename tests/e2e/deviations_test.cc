// Goal: the list of what the recorder carries out otherwise than the kernel is
// true: each of its cases goes well on the kernel and not in QEMU, which is
// said, also by the commands that show the bundle; with --strict there is none.
// On the host's kernel each goes well, or is doubted, too. A program that does
// what all programs do is not doubted.
// Method: tests/programs/deviations.c, cases of it on both: one in four, each
// in tools/test --all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "common/result.h"
#include "tests/e2e/clew_command.h"

namespace clew::e2e {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kOrdinary = "ordinary";
constexpr const char* kDoubt =
    "may be the recorder's: it carries out otherwise than the kernel: ";

std::vector<std::string> Cases() {
  std::istringstream names(Run({Tracee("deviations")}).text);
  std::vector<std::string> cases;
  for (std::string name; std::getline(names, name);) {
    if (name != kOrdinary) {
      cases.push_back(name);
    }
  }
  return cases;
}

int StatusOnTheKernel(const std::string& name) {
  return Run({Tracee("deviations"), name}).exit_status;
}

ProgramOutput RecordCase(const std::string& name, const std::string& bundle,
                         const std::vector<std::string>& options = {},
                         const std::string& source = "qemu") {
  std::vector<std::string> line = {"record", "--source", source, "--fail-on",
                                   "exit=3", "-o",       bundle};
  line.insert(line.end(), options.begin(), options.end());
  line.insert(line.end(), {"--", Tracee("deviations"), name});
  return Clew(line);
}

// One in how many cases.
class DeviationCasesTest : public testing::TestWithParam<size_t> {};

TEST_P(DeviationCasesTest, EachGoesWellOnTheKernelAndFailsUnderTheRecorder) {
  const Scratch scratch;
  const std::vector<std::string> cases = Cases();
  ASSERT_GE(cases.size(), 30u);
  for (size_t i = 0; i < cases.size(); i += GetParam()) {
    const std::string& name = cases[i];
    EXPECT_EQ(StatusOnTheKernel(name), 0) << name;
    const std::string bundle = scratch.Path("b.clew");
    const ProgramOutput recorded = RecordCase(name, bundle);
    EXPECT_EQ(recorded.exit_status, kExitFinding) << name << recorded.text;
    EXPECT_THAT(recorded.text, HasSubstr("exit status 3"));
    EXPECT_THAT(recorded.text, HasSubstr("this failure " + (kDoubt + name)));
    std::filesystem::remove_all(bundle);
  }
}

TEST_P(DeviationCasesTest, StrictEndsTheRecordingAtTheFirstAndNamesIt) {
  const Scratch scratch;
  const std::vector<std::string> cases = Cases();
  for (size_t i = 0; i < cases.size(); i += GetParam()) {
    const std::string& name = cases[i];
    const std::string bundle = scratch.Path("b.clew");
    const ProgramOutput recorded = RecordCase(name, bundle, {"--strict"});
    EXPECT_EQ(recorded.exit_status, kExitEnvironment) << recorded.text;
    EXPECT_THAT(recorded.text, HasSubstr("than the kernel: " + name));
    EXPECT_FALSE(std::filesystem::exists(bundle)) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Quarter, DeviationCasesTest, testing::Values(4));
// In tools/test --all.
INSTANTIATE_TEST_SUITE_P(More, DeviationCasesTest, testing::Values(1));

// What only QEMU carries out otherwise goes well on the host's kernel.
TEST_P(DeviationCasesTest, EachGoesWellWhereTheKernelRunsItOrIsDoubted) {
  const Scratch scratch;
  const std::vector<std::string> cases = Cases();
  for (size_t i = 0; i < cases.size(); i += GetParam()) {
    const std::string& name = cases[i];
    const std::string bundle = scratch.Path("b.clew");
    const ProgramOutput recorded = RecordCase(name, bundle, {}, "tracer");
    if (recorded.exit_status != kExitOk) {
      EXPECT_EQ(recorded.exit_status, kExitFinding) << name << recorded.text;
      EXPECT_THAT(recorded.text,
                  HasSubstr(std::string("this failure ") + kDoubt))
          << name;
    }
    std::filesystem::remove_all(bundle);
  }
}

TEST(DeviationsTest, WhatEveryProgramDoesIsNotDoubted) {
  EXPECT_EQ(StatusOnTheKernel(kOrdinary), 0);
  for (const char* source : {"tracer", "qemu"}) {
    const Scratch scratch;
    const ProgramOutput recorded =
        RecordCase(kOrdinary, scratch.Path("b.clew"), {"--strict"}, source);
    EXPECT_EQ(recorded.exit_status, kExitOk) << recorded.text;
    EXPECT_THAT(recorded.text, Not(HasSubstr("may be the recorder's")));
  }
}

TEST(DeviationsTest, EveryCommandSaysThatTheFailureMayBeTheRecorders) {
  const Scratch scratch;
  const std::string bundle = scratch.Path("b.clew");
  const std::string name = "prctl(PR_GET_SECCOMP)";
  ASSERT_EQ(RecordCase(name, bundle).exit_status, kExitFinding);
  const std::vector<std::vector<std::string>> commands = {
      {"info", bundle}, {"backtrace", bundle}, {"solve", bundle}};
  for (const auto& command : commands) {
    const ProgramOutput output = Clew(command);
    EXPECT_EQ(output.exit_status, kExitOk) << output.text;
    EXPECT_THAT(output.text, HasSubstr(kDoubt + name));
  }
  // What the collector keeps, and shows on its page.
  const auto report = nlohmann::json::parse(
      Clew({"backtrace", "--json", bundle}).text, nullptr, false);
  ASSERT_TRUE(report.is_object());
  EXPECT_THAT(report["notes"].dump(), HasSubstr(kDoubt + name));
}

}  // namespace
}  // namespace clew::e2e
