// Goal: `clew record --free --ring` keeps the end of a run, however long it is:
// what is kept is whole, is solved from its start state on, ends in the memory
// of the core dump, and is replayed every time; and the program does not notice
// that it was stopped: it waits for as long as it asks for, has no child that
// it did not make, and goes on when the recorder leaves, or is killed.
// Method: the built program; runs that are many times as long as the ring.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "common/os/child_process.h"
#include "common/os/file.h"
#include "recorder/software/record.h"
#include "tests/e2e/answering_program.h"
#include "tests/e2e/clew_command.h"

namespace clew::e2e {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr const char* kKept = "the end of the run is kept";

ProgramOutput RecordEnd(const std::string& bundle,
                        const std::vector<std::string>& command) {
  std::vector<std::string> words = {"record", "--free", "--ring", "256K",
                                    "-o",     bundle,   "--"};
  words.insert(words.end(), command.begin(), command.end());
  return Clew(words);
}

struct EndCase {
  const char* name;
  std::vector<std::string> command;
  const char* told;  // by record
};

void PrintTo(const EndCase& c, std::ostream* out) { *out << c.name; }

class RingTest : public testing::TestWithParam<EndCase> {};

TEST_P(RingTest, TheEndOfARunIsSolvedAndReplayed) {
  const Scratch scratch;
  const std::string bundle = scratch.Path("b.clew");
  const ProgramOutput recorded = RecordEnd(bundle, GetParam().command);
  ASSERT_EQ(recorded.exit_status, kExitFinding) << recorded.text;
  EXPECT_THAT(recorded.text, HasSubstr(GetParam().told));
  EXPECT_THAT(recorded.text, HasSubstr(kKept));
  EXPECT_THAT(recorded.text, Not(HasSubstr("not known whole")));
  EXPECT_THAT(Clew({"info", bundle}).text, HasSubstr("loss          none"));
  ExpectSolvedAndReplayed(bundle, "memory-exact");
}

// So many instructions of a shell take several rings.
constexpr const char* kLoop =
    "i=0; while [ $i -lt 60000 ]; do i=$((i + 1)); done; ";

INSTANTIATE_TEST_SUITE_P(
    Programs, RingTest,
    testing::Values(
        EndCase{"one_thread",
                {"/bin/sh", "-c", std::string(kLoop) + "kill -SEGV $$"},
                "SIGSEGV"},
        EndCase{"another_program",
                {"/bin/sh", "-c",
                 std::string(kLoop) + "exec /bin/sh -c '" + kLoop +
                     "kill -SEGV $$'"},
                "SIGSEGV"},
        // It waits for as long as it would, though it is stopped meanwhile.
        EndCase{"limited_wait", {Tracee("limited_wait")}, "SIGABRT"},
        EndCase{"without_first", {Tracee("without_first")}, "SIGABRT"}),
    [](const auto& test) { return std::string(test.param.name); });

// Waits until the half of that number is recorded.
void AwaitHalf(const std::string& bundle, int number) {
  const std::string half =
      fmt::format("{}.partial/raw/half.{}", bundle, number);
  while (!Exists(half)) {
    usleep(1000);
  }
}

TEST(RingAttachTest, TheEndOfAProcessIsSolvedAndReplayed) {
  const AnsweringProgram endless;
  const Scratch scratch;
  const std::string bundle = scratch.Path("b.clew");
  ProgramOutput recorded;
  std::thread recorder([&] {
    recorded = Clew({"record", "--free", "--ring", "256K", "--pid",
                     endless.Number(), "-o", bundle});
  });
  AwaitHalf(bundle, 5);
  EXPECT_EQ(endless.Ask(), "pong\n");
  endless.Tell("x\n");
  recorder.join();
  ASSERT_EQ(recorded.exit_status, kExitFinding) << recorded.text;
  EXPECT_THAT(recorded.text, HasSubstr(kKept));
  ExpectSolvedAndReplayed(bundle);
}

TEST(RingAttachTest, AProcessGoesOnAsIfNothingHadBeen) {
  const AnsweringProgram endless;
  const std::string before = endless.Traces();
  const Scratch scratch;
  recorder::RecordOptions options;
  options.process = endless.pid();
  options.is_free = true;
  options.ring_bytes = 256 << 10;
  options.output = scratch.Path("b.clew");
  const std::string seventh = options.output + ".partial/raw/half.7";
  options.is_over = [&] { return Exists(seventh); };
  const auto outcome = recorder::Record(options);
  ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
  EXPECT_EQ(outcome->failure.kind, FailureKind::kTimeLimit);
  EXPECT_GE(outcome->ring.halves, 7u);
  EXPECT_EQ(endless.Ask(), "pong\n");
  EXPECT_EQ(endless.Traces(), before);
  const auto children =
      ReadWholeText(fmt::format("/proc/{0}/task/{0}/children", endless.pid()));
  ASSERT_TRUE(children.has_value()) << children.error().message;
  EXPECT_EQ(*children, "");
  ExpectSolvedAndReplayed(options.output);
}

// At whatever moment: its threads may be about to stop, or wait for it.
TEST(RingAttachTest, AProcessGoesOnWhenItsRecorderIsKilled) {
  const Scratch scratch;
  for (int half = 3; half < 15; ++half) {
    const AnsweringProgram endless;
    const std::string bundle = scratch.Path(std::to_string(half));
    const auto recorder =
        SpawnProgram({Binary(), "record", "--free", "--ring", "256K", "--pid",
                      endless.Number(), "-o", bundle},
                     {});
    ASSERT_TRUE(recorder.has_value());
    AwaitHalf(bundle, half);
    kill(*recorder, SIGKILL);
    ASSERT_TRUE(WaitForChild(*recorder).has_value());
    for (int i = 0; i < 20; ++i) {
      ASSERT_EQ(endless.Ask(), "pong\n");
    }
    EXPECT_THAT(endless.Ask("f\n"), StartsWith("cpus"));  // a child
  }
}

TEST(RingOptionsTest, WhatHasNoMeaningIsRefused) {
  const Scratch scratch;
  const auto refusal = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "record");
    words.insert(words.end(),
                 {"-o", scratch.Path("b.clew"), "--", "/bin/true"});
    const ProgramOutput refused = Clew(words);
    EXPECT_EQ(refused.exit_status, kExitUsage);
    return refused.text;
  };
  EXPECT_THAT(refusal({"--ring", "4M"}), HasSubstr("--ring needs --free"));
  EXPECT_THAT(refusal({"--free", "--ring", "4M", "--size-limit", "1G"}),
              HasSubstr("leave out --size-limit"));
  EXPECT_THAT(refusal({"--free", "--ring", "4K"}),
              HasSubstr("must be 256K at least"));
  EXPECT_THAT(refusal({"--source", "perf", "--ring", "4M"}),
              HasSubstr("--ring is not for --source perf"));
}

}  // namespace
}  // namespace clew::e2e
