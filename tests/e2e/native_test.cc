// Goal: what fails on this host's CPU under `clew record --source step`, and
// under `--source tracer`, is solved, replayed every time, repeated by its
// printed command, and told as any other failure; what cannot be recorded so is
// refused with its reason. (That such a recording is right to the last byte of
// memory: truth_test.cc.)
// Method: the built program, on programs that lose a race, hang, and die by a
// signal; and on one of each kind that is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "common/result.h"
#include "tests/e2e/clew_command.h"

namespace clew::e2e {
namespace {

using testing::HasSubstr;
using testing::Not;

struct NativeCase {
  const char* program;
  const char* told;  // by solve
  const char* source = "step";

  std::string TestName() const {
    std::string name = program;
    std::ranges::replace(name, '/', '_');
    return name;
  }
};

void PrintTo(const NativeCase& c, std::ostream* out) { *out << c.program; }

class NativeFailureTest : public testing::TestWithParam<NativeCase> {};

TEST_P(NativeFailureTest, IsSolvedReplayedAndRepeated) {
  const Scratch scratch;
  const std::string bundle = scratch.Path("fail.clew");
  const ProgramOutput recorded =
      Clew({"record", "--source", GetParam().source, "--until-fail", "-o",
            bundle, "--", Tracee(GetParam().program)});
  ASSERT_EQ(recorded.exit_status, kExitFinding) << recorded.text;
  const ProgramOutput info = Clew({"info", bundle});
  EXPECT_THAT(info.text, HasSubstr(GetParam().source == std::string("tracer")
                                       ? "software (tracer)"
                                       : "software (stepper)"));
  EXPECT_THAT(info.text, HasSubstr("loss          none"));

  ExpectSolvedAndReplayed(bundle, GetParam().told);

  const ProgramOutput again =
      Clew({"record", "--repeat", bundle, "-o", scratch.Path("again.clew")});
  EXPECT_EQ(again.exit_status, kExitFinding) << again.text;
  EXPECT_THAT(again.text, HasSubstr("it ended as the run that it repeats"));
}

INSTANTIATE_TEST_SUITE_P(
    Programs, NativeFailureTest,
    testing::Values(NativeCase{"vector_total", "vector_total.c"}),
    [](const auto& test) { return test.param.TestName(); });

// In tools/test --all: each takes many seconds.
INSTANTIATE_TEST_SUITE_P(
    More, NativeFailureTest,
    testing::Values(NativeCase{"races/lost_update", "lost_update.c"},
                    NativeCase{"races/use_after_free", "use_after_free.c"},
                    NativeCase{"wide_total", "wide_total.c"},
                    NativeCase{"wide/changed_text", "changed_text.c"},
                    NativeCase{"wide/dot_product", "dot_product.c"},
                    NativeCase{"wide/early_table", "early_table.c"},
                    NativeCase{"wide/torn_copy", "torn_copy.c"},
                    NativeCase{"deadlocks/condition", "  deadlock   "},
                    NativeCase{"phases", "phases.c"}),
    [](const auto& test) { return test.param.TestName(); });

INSTANTIATE_TEST_SUITE_P(
    Tracer, NativeFailureTest,
    testing::Values(
        NativeCase{"races/lost_update", "lost_update.c", "tracer"},
        NativeCase{"races/use_after_free", "use_after_free.c", "tracer"},
        NativeCase{"wide/dot_product", "dot_product.c", "tracer"},
        NativeCase{"deadlocks/condition", "  deadlock   ", "tracer"}),
    [](const auto& test) { return test.param.TestName(); });

// In tools/test --all.
INSTANTIATE_TEST_SUITE_P(
    MoreByTracer, NativeFailureTest,
    testing::Values(NativeCase{"vector_total", "vector_total.c", "tracer"},
                    NativeCase{"wide_total", "wide_total.c", "tracer"},
                    NativeCase{"wide/changed_text", "changed_text.c", "tracer"},
                    NativeCase{"wide/early_table", "early_table.c", "tracer"},
                    NativeCase{"wide/torn_copy", "torn_copy.c", "tracer"},
                    NativeCase{"phases", "phases.c", "tracer"}),
    [](const auto& test) { return test.param.TestName(); });

// Signals from another thread, at any moment: a program that looks at its own
// registers, frames and masks in the handlers and behind them.
class TracerSignalsTest : public testing::TestWithParam<const char*> {};

TEST_P(TracerSignalsTest, ComeBetweenInstructionsOfTheProgram) {
  const Scratch scratch;
  const ProgramOutput recorded =
      Clew({"record", "--source", "tracer", "-o", scratch.Path("b.clew"), "--",
            Built("tests/recorder/tracer/programs/clew_tracer_signals"),
            GetParam(), "20"});
  EXPECT_EQ(recorded.exit_status, kExitOk) << recorded.text;
  EXPECT_THAT(recorded.text, HasSubstr(": 20 signals"));
}

INSTANTIATE_TEST_SUITE_P(Forms, TracerSignalsTest,
                         testing::Values("registers", "frame", "longjmp",
                                         "calls"),
                         [](const auto& form) { return form.param; });

// With inputs as they are recorded beside hardware: no instruction's result is
// in the log, threads are made by clone3, files are mapped by the kernel alone.
class TappedFailureTest : public testing::TestWithParam<NativeCase> {};

TEST_P(TappedFailureTest, IsSolvedAndReplayed) {
  if (const std::string why = WhyNoBpf(); !why.empty()) {
    GTEST_SKIP() << why;
  }
  const Scratch scratch;
  const std::string bundle = scratch.Path("fail.clew");
  const ProgramOutput recorded =
      Clew({"record", "--source", "step", "--inputs", "--until-fail", "-o",
            bundle, "--", Tracee(GetParam().program)});
  ASSERT_EQ(recorded.exit_status, kExitFinding) << recorded.text;
  EXPECT_THAT(recorded.text, Not(HasSubstr("not known whole")));
  EXPECT_THAT(recorded.text, Not(HasSubstr("to repeat this run")));
  ExpectSolvedAndReplayed(bundle, GetParam().told);
}

INSTANTIATE_TEST_SUITE_P(
    Programs, TappedFailureTest,
    testing::Values(NativeCase{"deadlocks/condition", "  deadlock   "}),
    [](const auto& test) { return test.param.TestName(); });

// In tools/test --all.
INSTANTIATE_TEST_SUITE_P(
    More, TappedFailureTest,
    testing::Values(NativeCase{"races/lost_update", "lost_update.c"},
                    NativeCase{"vector_total", "vector_total.c"},
                    NativeCase{"wide_total", "wide_total.c"}),
    [](const auto& test) { return test.param.TestName(); });

// Goal: the CPU that the program sees is one that a replay knows.
TEST(MoreNativeTest, NothingThatRanIsUnknown) {
  const Scratch scratch;
  const ProgramOutput recorded =
      Clew({"record", "--source", "step", "--json", "-o",
            scratch.Path("b.clew"), "--", "/bin/true"});
  ASSERT_EQ(recorded.exit_status, kExitOk) << recorded.text;
  const auto report = nlohmann::json::parse(recorded.text, nullptr, false);
  ASSERT_TRUE(report.is_object()) << recorded.text;
  EXPECT_TRUE(report["unknown_instructions"].empty()) << recorded.text;
  EXPECT_GT(report["instructions"], 10'000);
}

// It is stepped by nobody, so it has all that the host's CPU has, but began
// with what its parent was told.
TEST(MoreNativeTest, AChildProcessRunsOnTheHost) {
  const Scratch scratch;
  const ProgramOutput recorded =
      Clew({"record", "--source", "step", "-o", scratch.Path("b.clew"), "--",
            "/bin/sh", "-c", "/bin/true && /bin/echo child is well"});
  EXPECT_EQ(recorded.exit_status, kExitOk) << recorded.text;
  EXPECT_THAT(recorded.text, HasSubstr("child is well"));
}

// A shell that makes way for a program, which begins as if nothing had been.
TEST(MoreNativeTest, AProgramThatReplacesItselfIsRecordedFromItsNewStart) {
  const Scratch scratch;
  const std::string bundle = scratch.Path("fail.clew");
  const ProgramOutput recorded =
      Clew({"record", "--source", "step", "--until-fail", "-o", bundle, "--",
            "/bin/sh", "-c", "exec " + Tracee("phases")});
  ASSERT_EQ(recorded.exit_status, kExitFinding) << recorded.text;
  const ProgramOutput solved = ClewAtLeisure("solve", {bundle});
  EXPECT_EQ(solved.exit_status, kExitOk) << solved.text;
  EXPECT_THAT(solved.text, HasSubstr("phases.c"));
  const ProgramOutput replayed = Clew({"replay", "--check", "3", bundle});
  EXPECT_EQ(replayed.exit_status, kExitOk) << replayed.text;
}

// Whether there is Intel PT, too, is another matter.
TEST(NativeTest, TheSelfTestGoesTheWholeWayFromAFailureToItsReplay) {
  const ProgramOutput tested = Clew({"doctor", "--selftest", "--json"});
  EXPECT_THAT(tested.exit_status, testing::AnyOf(kExitOk, kExitEnvironment));
  const auto report = nlohmann::json::parse(tested.text, nullptr, false);
  ASSERT_TRUE(report.is_object()) << tested.text;
  size_t in_software = 0;
  for (const auto& step : report["steps"]) {
    if (step["name"].get<std::string>().starts_with("software ")) {
      ++in_software;
      EXPECT_EQ(step["outcome"], "pass") << step;
    }
  }
  EXPECT_EQ(in_software, 4u);
}

struct UnseenCase {
  const char* name;
  std::vector<std::string> command;  // [0] is a test program, or absolute
  const char* told;
};
void PrintTo(const UnseenCase& c, std::ostream* out) { *out << c.name; }

class UnseenTest : public testing::TestWithParam<UnseenCase> {};

TEST_P(UnseenTest, WhereATapCannotSeeEverythingTheRecordingEndsWithTheReason) {
  if (const std::string why = WhyNoBpf(); !why.empty()) {
    GTEST_SKIP() << why;
  }
  const Scratch scratch;
  std::vector<std::string> words = {
      "record", "--source", "step", "--inputs", "-o", scratch.Path("b.clew"),
      "--"};
  std::vector<std::string> command = GetParam().command;
  if (!command[0].starts_with('/')) {
    command[0] = Tracee(command[0]);
  }
  words.insert(words.end(), command.begin(), command.end());
  const ProgramOutput recorded = Clew(words);
  EXPECT_EQ(recorded.exit_status, kExitEnvironment) << recorded.text;
  EXPECT_THAT(recorded.text, HasSubstr(GetParam().told));
  EXPECT_FALSE(std::filesystem::exists(scratch.Path("b.clew")));
}

constexpr const char* kAnother = "replaced itself by another";
constexpr const char* kChild = "makes a process by";

INSTANTIATE_TEST_SUITE_P(Programs, UnseenTest,
                         testing::Values(UnseenCase{
                             "replaced", {"replaced"}, kAnother}),
                         [](const auto& test) { return test.param.name; });

// In tools/test --all.
INSTANTIATE_TEST_SUITE_P(
    More, UnseenTest,
    testing::Values(
        UnseenCase{"children", {"children"}, kChild},
        UnseenCase{"other", {"/bin/sh", "-c", "exec /bin/true"}, kAnother},
        UnseenCase{
            "child", {"/bin/sh", "-c", "/bin/true && /bin/true"}, kChild}),
    [](const auto& test) { return test.param.name; });

TEST(NativeTest, ATapIsOfAProgramThatRunsByStep) {
  const std::vector<std::vector<std::string>> refused = {
      {"record", "--inputs", "-o", "b.clew", "--", "/bin/true"},
      {"record", "--source", "step", "--inputs", "--repeat", "a.clew", "-o",
       "b.clew"},
      {"record", "--source", "step", "--inputs-rate", "1M", "-o", "b.clew",
       "--", "/bin/true"}};
  for (const std::vector<std::string>& words : refused) {
    const ProgramOutput output = Clew(words);
    EXPECT_EQ(output.exit_status, kExitUsage) << output.text;
    EXPECT_THAT(output.text, HasSubstr("--inputs"));
  }
}

TEST(NativeTest, WhatCannotBeRecordedIsRefusedByName) {
  const Scratch scratch;
  const ProgramOutput refused =
      Clew({"record", "--source", "step", "--timing", "none", "-o",
            scratch.Path("b.clew"), "--", Tracee("jit")});
  EXPECT_EQ(refused.exit_status, kExitEnvironment) << refused.text;
  EXPECT_THAT(refused.text, HasSubstr("the program replaced code at"));
  EXPECT_FALSE(std::filesystem::exists(scratch.Path("b.clew")));
}

}  // namespace
}  // namespace clew::e2e
