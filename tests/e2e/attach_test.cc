// Goal: `clew record --pid`, by the tracer, by step or free, records a process
// from any moment of its life on: what truly happened from there is a witness
// that ends in the memory and registers of the core dump; a failure is solved
// and replayed; and the process goes on as if nothing had been. Method: a
// program that does all that a stop may come in the way of, attached to again
// and again. The recorder also writes down who had the turn when.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>
#include <tuple>

#include "common/os/child_process.h"
#include "common/os/fd.h"
#include "common/os/process_state.h"
#include "follower/bundle/bundle_recording.h"
#include "recorder/software/record.h"
#include "solver/check.h"
#include "tests/e2e/answering_program.h"
#include "tests/e2e/clew_command.h"
#include "tests/e2e/truth/true_schedule.h"

namespace clew::e2e {
namespace {

using testing::HasSubstr;
using testing::Not;

using recorder::SoftwareSource;

// How it is recorded.
enum class Way : uint8_t { kTracer, kStep, kFree };

const char* NameOf(Way way) {
  switch (way) {
    case Way::kTracer:
      return "tracer";
    case Way::kStep:
      return "step";
    case Way::kFree:
      return "free";
  }
  return "";
}

// Before what to record.
std::vector<std::string> RecordWords(Way way) {
  return way == Way::kFree
             ? std::vector<std::string>{"record", "--free"}
             : std::vector<std::string>{"record", "--source", NameOf(way)};
}

recorder::RecordOptions AttachOptions(Way way, const AnsweringProgram& endless,
                                      const Scratch& scratch, uint64_t seed) {
  recorder::RecordOptions options;
  options.source =
      way == Way::kStep ? SoftwareSource::kStep : SoftwareSource::kTracer;
  options.is_free = way == Way::kFree;
  options.process = endless.pid();
  options.output = scratch.Path("b.clew");
  options.seed = seed;
  options.quantum_insns = 100;
  options.is_over = [turns = 0]() mutable { return ++turns > 600; };
  return options;
}

class AttachTest : public testing::TestWithParam<std::tuple<Way, uint64_t>> {};

TEST_P(AttachTest, FromAnyMomentOnTheTrueOrderIsAWitness) {
  const auto& [way, seed] = GetParam();
  const AnsweringProgram endless;
  const std::string before = endless.Traces();
  std::minstd_rand random(static_cast<uint32_t>(seed));
  std::this_thread::sleep_for(std::chrono::microseconds(random() % 20'000));
  Scratch scratch;
  recorder::RecordOptions options = AttachOptions(way, endless, scratch, seed);
  options.turns_path = scratch.Path("turns");
  const auto outcome = recorder::Record(options);
  ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
  if (outcome->failure.kind != FailureKind::kTimeLimit) {
    scratch.Keep();
    FAIL() << "signal " << outcome->failure.signal << ", kept "
           << scratch.Path("b.clew");
  }
  EXPECT_EQ(endless.Ask(), "pong\n");
  EXPECT_EQ(endless.Traces(), before);

  const auto recording = follower::OpenRecording(scratch.Path("b.clew"));
  ASSERT_TRUE(recording.has_value()) << recording.error().message;
  const auto turns = ReadTurns(scratch.Path("turns"));
  ASSERT_TRUE(turns.has_value()) << turns.error().message;
  const auto report = solver::CheckSchedule((*recording)->recording,
                                            TrueSchedule(*turns), nullptr);
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_EQ(report->disagreement.value_or(""), "");
  EXPECT_EQ(report->outputs_differing, 0u);
  EXPECT_GT(report->memory.bytes_compared, 0u);
  for (const auto& difference : report->memory.differences) {
    ADD_FAILURE() << fmt::format("{:#x}: {} bytes differ from the core dump",
                                 difference.addr, difference.size_bytes);
  }
  EXPECT_GT(report->registers.compared, 0u);
  EXPECT_TRUE(report->registers.differences.empty());
}

constexpr std::array kByTurns = {Way::kTracer, Way::kStep};

std::string WayAndSeed(
    const testing::TestParamInfo<AttachTest::ParamType>& info) {
  return fmt::format("{}{}", NameOf(std::get<0>(info.param)),
                     std::get<1>(info.param));
}

INSTANTIATE_TEST_SUITE_P(Moments, AttachTest,
                         testing::Combine(testing::ValuesIn(kByTurns),
                                          testing::Values(1, 2)),
                         WayAndSeed);

// In tools/test --all.
INSTANTIATE_TEST_SUITE_P(More, AttachTest,
                         testing::Combine(testing::ValuesIn(kByTurns),
                                          testing::Range<uint64_t>(3, 13)),
                         WayAndSeed);

// What `clew record` says and does, in each way.
class AttachCommandTest : public testing::TestWithParam<Way> {};

INSTANTIATE_TEST_SUITE_P(, AttachCommandTest,
                         testing::Values(Way::kTracer, Way::kStep, Way::kFree),
                         [](const auto& which) {
                           return std::string(NameOf(which.param));
                         });

TEST_P(AttachCommandTest, SomethingIsRecordedThoughItIsOverAtOnce) {
  const AnsweringProgram endless;
  const Scratch scratch;
  recorder::RecordOptions options =
      AttachOptions(GetParam(), endless, scratch, 1);
  options.is_over = [] { return true; };
  const auto outcome = recorder::Record(options);
  ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
  EXPECT_GT(outcome->insns, 0u);
  const ProgramOutput solved = ClewAtLeisure("solve", {options.output});
  EXPECT_EQ(solved.exit_status, kExitOk) << solved.text;
}

// Lets a program fail while it is recorded, as `more` says besides.
ProgramOutput RecordFailureOf(Way way, const AnsweringProgram& endless,
                              const std::string& bundle,
                              const std::vector<std::string>& more) {
  std::vector<std::string> words = RecordWords(way);
  words.insert(words.end(), {"--pid", endless.Number(), "-o", bundle});
  words.insert(words.end(), more.begin(), more.end());
  ProgramOutput recorded;
  std::thread recorder([&] { recorded = Clew(words); });
  endless.AwaitRecorder();
  endless.Tell("x\n");
  recorder.join();
  return recorded;
}

// With inputs as they are recorded beside hardware: rseq stays registered, and
// calls are the kernel's. (A thread is on another core for the kernel than in
// the trace; this program does not ask.)
TEST(AttachInputsTest, AFailureIsSolvedByInputsThatEbpfSaw) {
  if (const std::string why = WhyNoBpf(); !why.empty()) {
    GTEST_SKIP() << why;
  }
  const AnsweringProgram endless("endless", "", {"plain"});
  const Scratch scratch;
  const std::string bundle = scratch.Path("fail.clew");
  const ProgramOutput recorded =
      RecordFailureOf(Way::kStep, endless, bundle, {"--inputs"});
  ASSERT_EQ(recorded.exit_status, kExitFinding) << recorded.text;
  EXPECT_THAT(recorded.text, Not(HasSubstr("not known whole")));
  ExpectSolvedAndReplayed(bundle);
}

TEST_P(AttachCommandTest, AFailureAfterAttachingIsSolvedAndReplayed) {
  const AnsweringProgram endless;
  const Scratch scratch;
  const std::string bundle = scratch.Path("fail.clew");
  const ProgramOutput recorded =
      RecordFailureOf(GetParam(), endless, bundle, {});
  ASSERT_EQ(recorded.exit_status, kExitFinding) << recorded.text;
  EXPECT_THAT(recorded.text, HasSubstr("SIGABRT"));
  EXPECT_THAT(recorded.text, HasSubstr("after it was stopped for"));
  ExpectSolvedAndReplayed(bundle);
  const ProgramOutput info = Clew({"info", bundle});
  EXPECT_THAT(info.text, HasSubstr("endless.c"));
  const ProgramOutput again =
      Clew({"record", "--repeat", bundle, "-o", scratch.Path("again.clew")});
  EXPECT_EQ(again.exit_status, kExitEnvironment) << again.text;
  EXPECT_THAT(again.text, HasSubstr("a process that was attached to"));
}

// `clew record --pid`, until it is told to stop.
class RecorderOf {
 public:
  RecorderOf(Way way, const AnsweringProgram& endless,
             const std::string& bundle) {
    std::vector<std::string> words = RecordWords(way);
    words.insert(words.begin(), Binary());
    words.insert(words.end(), {"--pid", endless.Number(), "-o", bundle});
    const auto pid = SpawnProgram(words, {});
    pid_ = pid.value();
    endless.AwaitRecorder();
  }
  void Stop(int signal = SIGINT) const {
    kill(pid_, signal);
    const auto status = WaitForChild(pid_);
    ASSERT_TRUE(status.has_value());
    EXPECT_EQ(*status, 0);
  }
  void Kill() const {
    kill(pid_, SIGKILL);
    ASSERT_TRUE(WaitForChild(pid_).has_value());
  }

 private:
  pid_t pid_ = 0;
};

TEST_P(AttachCommandTest, TheProcessGoesOnWithoutItsRecorder) {
  const AnsweringProgram endless;
  const Scratch scratch;
  for (const int signal : {SIGINT, SIGTERM}) {
    const std::string bundle = scratch.Path(std::to_string(signal));
    const RecorderOf recorder(GetParam(), endless, bundle);
    EXPECT_EQ(endless.Ask(), "pong\n");  // under the recorder
    recorder.Stop(signal);
    EXPECT_EQ(endless.Ask(), "pong\n");
    const ProgramOutput solved = ClewAtLeisure("solve", {bundle});
    EXPECT_EQ(solved.exit_status, kExitOk) << solved.text;
  }
}

// Its threads find out once what they log has no room left. None of them ends,
// where the recorder has them stop by a breakpoint.
TEST(AttachFreeTest, TheProcessGoesOnWhenItsRecorderIsKilled) {
  const AnsweringProgram program("own_stacks");
  const Scratch scratch;
  const RecorderOf recorder(Way::kFree, program, scratch.Path("b.clew"));
  EXPECT_EQ(program.Ask(), "pong\n");
  recorder.Kill();
  for (int i = 0; i < 300; ++i) {
    ASSERT_EQ(program.Ask(), "pong\n");
  }
  EXPECT_EQ(program.Ask("f\n"), "pong\n");
}

// Processes are made while signals come, which nobody is to see.
TEST(AttachFreeTest, ProcessesThatEndInterruptNobody) {
  const AnsweringProgram endless;
  const Scratch scratch;
  const std::string before = endless.Ask("f\n");
  const RecorderOf recorder(Way::kFree, endless, scratch.Path("b.clew"));
  for (int i = 0; i < 300; ++i) {
    ASSERT_EQ(endless.Ask("f\n"), before);
  }
  recorder.Stop();
  EXPECT_EQ(endless.Ask(), "pong\n");
}

// A thread that a recorder let go in a wait with a time limit is in
// restart_syscall(2) when the next one comes.
TEST_P(AttachCommandTest, SleepersAreRecordedAgainAndAgain) {
  const AnsweringProgram program("asleep");
  const Scratch scratch;
  for (const char* const name : {"a.clew", "b.clew", "c.clew"}) {
    const std::string bundle = scratch.Path(name);
    const RecorderOf recorder(GetParam(), program, bundle);
    EXPECT_EQ(program.Ask(), "pong\n");
    recorder.Stop();
    const ProgramOutput solved = ClewAtLeisure("solve", {bundle});
    EXPECT_EQ(solved.exit_status, kExitOk) << solved.text;
  }
}

TEST_P(AttachCommandTest, HandlersAndTheirStacksAreAsTheProgramHasThem) {
  const AnsweringProgram program("own_stacks");
  const Scratch scratch;
  for (const char* const name : {"a.clew", "b.clew"}) {
    const std::string bundle = scratch.Path(name);
    const RecorderOf recorder(GetParam(), program, bundle);
    for (int i = 0; i < 5; ++i) {
      EXPECT_EQ(program.Ask(), "pong\n");
    }
    recorder.Stop();
    EXPECT_EQ(program.Ask(), "pong\n");
    const ProgramOutput solved = ClewAtLeisure("solve", {bundle});
    EXPECT_EQ(solved.exit_status, kExitOk) << solved.text;
  }
}

TEST_P(AttachCommandTest, ProcessesThatItMakesRunAsIfNobodyRecorded) {
  const AnsweringProgram endless;
  const Scratch scratch;
  const std::string before = endless.Ask("f\n");
  EXPECT_THAT(before, HasSubstr("code 1"));
  const RecorderOf recorder(GetParam(), endless, scratch.Path("b.clew"));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(endless.Ask("f\n"), before);
  }
  recorder.Stop();
  EXPECT_EQ(endless.Ask("f\n"), before);
  const ProgramOutput solved = ClewAtLeisure("solve", {scratch.Path("b.clew")});
  EXPECT_EQ(solved.exit_status, kExitOk) << solved.text;
}

// A signal that is ignored interrupts no call, whenever it comes: the program
// has a thread that does not bear that.
TEST_P(AttachCommandTest, TheEndOfAChildInterruptsNobody) {
  const AnsweringProgram endless;
  const Scratch scratch;
  for (int i = 0; i < 20; ++i) {
    const RecorderOf recorder(GetParam(), endless,
                              scratch.Path(std::to_string(i)));
    EXPECT_THAT(endless.Ask("f\n"), HasSubstr("code 1"));
    recorder.Stop();
    ASSERT_EQ(endless.Ask(), "pong\n");
  }
}

// rseq is for no thread while it is recorded, but one that was told to register
// it may not be refused: glibc ends the program.
TEST_P(AttachCommandTest, RseqIsRegisteredOnceTheProcessIsLetGo) {
  const AnsweringProgram program("late_rseq", "glibc.pthread.rseq=0");
  const Scratch scratch;
  const RecorderOf recorder(GetParam(), program, scratch.Path("b.clew"));
  EXPECT_EQ(program.Ask("r\n"), "error 0, kept 0\n");
  recorder.Stop();
  EXPECT_EQ(program.Ask("q\n"), fmt::format("error {}, kept 1\n", EBUSY));
  const ProgramOutput solved = ClewAtLeisure("solve", {scratch.Path("b.clew")});
  EXPECT_EQ(solved.exit_status, kExitOk) << solved.text;
}

TEST_P(AttachCommandTest, AProgramThatReplacesItselfIsLetGoAsItWouldBe) {
  const AnsweringProgram endless;
  const Scratch scratch;
  const std::string before = endless.Traces();
  const RecorderOf recorder(GetParam(), endless, scratch.Path("b.clew"));
  endless.Tell("e\n");
  EXPECT_EQ(endless.Ask(), "pong\n");
  recorder.Stop();
  EXPECT_EQ(endless.Ask(), "pong\n");
  EXPECT_EQ(endless.Traces(), before);
  const ProgramOutput solved = ClewAtLeisure("solve", {scratch.Path("b.clew")});
  EXPECT_EQ(solved.exit_status, kExitOk) << solved.text;
}

// In a service's place: who attaches is root, and may do what it may not.
TEST_P(AttachCommandTest, AnotherUsersProcessIsRecorded) {
  if (geteuid() != 0) {
    GTEST_SKIP() << "not root: there is no other user to become";
  }
  const AnsweringProgram program("endless", "", {"nobody"});
  const Scratch scratch;
  const std::string bundle = scratch.Path("fail.clew");
  const ProgramOutput recorded =
      RecordFailureOf(GetParam(), program, bundle, {});
  ASSERT_EQ(recorded.exit_status, kExitFinding) << recorded.text;
  const ProgramOutput solved = ClewAtLeisure("solve", {bundle});
  EXPECT_EQ(solved.exit_status, kExitOk) << solved.text;
}

// Its filters would end it for what it is made to do, and hold for what it
// does; who may not put them aside leaves it alone.
TEST_P(AttachCommandTest, AProcessWithFiltersOfSystemCallsLives) {
  const AnsweringProgram program;
  ASSERT_EQ(program.Ask("s\n"), "pong\n");
  const std::string before = program.Traces();
  const Scratch scratch;
  const recorder::RecordOptions options =
      AttachOptions(GetParam(), program, scratch, 1);
  const auto recorded = recorder::Record(options);
  EXPECT_FALSE(recorded && GetParam() == Way::kFree);
  if (!recorded) {
    EXPECT_EQ(recorded.error().code, ErrorCode::kUnsupported);
    EXPECT_THAT(recorded.error().message,
                testing::AnyOf(HasSubstr("it needs CAP_SYS_ADMIN"),
                               HasSubstr("record it without --free")));
  } else {
    const ProgramOutput solved = ClewAtLeisure("solve", {options.output});
    EXPECT_EQ(solved.exit_status, kExitOk) << solved.text;
  }
  EXPECT_EQ(program.Ask(), "pong\n");
  EXPECT_EQ(program.Traces(), before);
}

TEST(AttachTracerTest, AProcessThatMayHaveNoCodeMadeAtRunTimeIsLetBe) {
  const AnsweringProgram program;
  if (program.Ask("w\n") != "pong\n") {
    GTEST_SKIP() << "this kernel has no PR_SET_MDWE";
  }
  const std::string before = program.Traces();
  const Scratch scratch;
  const ProgramOutput recorded =
      Clew({"record", "--pid", program.Number(), "-o", scratch.Path("b.clew")});
  EXPECT_EQ(recorded.exit_status, kExitEnvironment) << recorded.text;
  EXPECT_THAT(recorded.text, HasSubstr("MemoryDenyWriteExecute="));
  EXPECT_EQ(program.Ask(), "pong\n");
  EXPECT_EQ(program.Traces(), before);
}

TEST(AttachRefusedTest, WhatCannotBeAttachedToIsRefusedByName) {
  const AnsweringProgram endless;
  const Scratch scratch;
  struct Refused {
    std::vector<std::string> arguments;
    const char* told;
  };
  kill(endless.pid(), SIGSTOP);
  while (
      Shell("grep -q '^State:.*stopped' /proc/" + endless.Number() + "/status")
          .exit_status != 0) {
  }
  for (const Refused& refused : std::initializer_list<Refused>{
           {{"--source", "step", "--pid", "999999999"},
            "there is no such process"},
           {{"--source", "step", "--pid", endless.Number()}, "it is stopped"},
           {{"--pid", "999999999"}, "there is no such process"},
           {{"--source", "qemu", "--pid", endless.Number()},
            "--pid is not for --source qemu"},
           {{"--source", "qemu", "--unit", "a.service"},
            "--unit is not for --source qemu"},
           {{"--source", "step", "--unit", "no-such.service"}, "no unit"},
           {{"--source", "step", "--unit", "a.service", "--pid",
             endless.Number()},
            "one of --unit and --pid"},
           {{"--source", "step", "--until-fail", "3", "--pid",
             endless.Number()},
            "leave out --until-fail"},
           {{"--source", "step", "--pid", endless.Number(), "--", "ls"},
            "leave out command"}}) {
    std::vector<std::string> arguments = {"record", "-o",
                                          scratch.Path("b.clew")};
    arguments.insert(arguments.end(), refused.arguments.begin(),
                     refused.arguments.end());
    const ProgramOutput output = Clew(arguments);
    EXPECT_EQ(output.exit_status, kExitUsage) << output.text;
    EXPECT_THAT(output.text, HasSubstr(refused.told));
  }
}

}  // namespace
}  // namespace clew::e2e
