// Goal: from paths, inputs and rough times alone, Solve finds a schedule that
// an independent run accepts, for runs that fail and runs that do not; and it
// claims none where the evidence was falsified.
// Method: property, seeded interleavings of small guest programs. Oracle: the
// guest recorder's own truth, and the independent checker.
#include "symbolic/solve.h"

#include <gtest/gtest.h>

#include "symbolic/check.h"
#include "tests/support/guest_programs.h"
#include "tests/support/guest_recorder.h"

namespace clew::symbolic {
namespace {

using testing::GuestRecorderOptions;
using testing::GuestRecording;

struct Program {
  const char* name;
  void (*entry)(uint64_t);
  uint64_t rounds;
};

constexpr Program kPrograms[] = {
    {"spin lock", testing::GuestSpinLockCounter, 20},
    {"mutex", testing::GuestMutexCounter, 20},
    {"lost update", testing::GuestLostUpdate, 40},
    {"order violation", testing::GuestOrderViolation, 10},
    {"deadlock", testing::GuestDeadlock, 12},
};

GuestRecording Record(const Program& program, uint64_t seed,
                      uint64_t window_ticks = 1024) {
  GuestRecorderOptions options;
  options.seed = seed;
  options.window_ticks = window_ticks;
  return GuestRecording::Make(program.entry, program.rounds, options);
}

TEST(CheckScheduleTest, AcceptsWhatHappenedAndEndsInItsMemory) {
  for (const Program& program : kPrograms) {
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      SCOPED_TRACE(fmt::format("{}, seed {}", program.name, seed));
      const GuestRecording guest = Record(program, seed);
      ASSERT_GT(guest.truth().insns, 100u);
      const auto report =
          CheckSchedule(guest.recording(), guest.truth().schedule, nullptr);
      ASSERT_TRUE(report) << report.error().message;
      EXPECT_EQ(report->disagreement.value_or(""), "");
      EXPECT_EQ(report->memory_digest, guest.truth().memory_digest);
      EXPECT_EQ(report->insns, guest.truth().insns);
    }
  }
}

TEST(CheckScheduleTest, RefusesAStepAgainstTheOrderOfTime) {
  const GuestRecording guest = Record(kPrograms[0], 3, 64);
  auto steps = guest.truth().schedule;
  const Tid last = steps.back().thread;
  // Runs one thread to its end before the others have begun.
  uint64_t end = 0;
  for (const ScheduleStep& step : steps) {
    end = step.thread == last ? step.until_insn : end;
  }
  steps.insert(
      steps.begin(),
      {.kind = ScheduleStep::Kind::kRun, .thread = last, .until_insn = end});
  const auto report = CheckSchedule(guest.recording(), steps, nullptr);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_TRUE(report->disagreement);
}

TEST(SolveTest, FindsAWitnessForEveryRecordedRun) {
  uint64_t guess_failed = 0;
  for (const Program& program : kPrograms) {
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      SCOPED_TRACE(fmt::format("{}, seed {}", program.name, seed));
      const GuestRecording guest = Record(program, seed);
      SolveOptions options;
      options.time_limit_s = 5;
      const auto report = Solve(guest.recording(), options, nullptr);
      ASSERT_TRUE(report) << report.error().message;
      EXPECT_EQ(report->verdict, Verdict::kWitness)
          << report->reason << "; windows: " << report->windows.furthest.text
          << "; constructive: "
          << report->constructive.answer.deepest_contradiction;
      guess_failed += report->windows.guess_was_enough ? 0 : 1;
    }
  }
  // Otherwise the search was not tested.
  EXPECT_GT(guess_failed, 5u);
}

TEST(SolveTest, ClaimsNothingWhereAPathWasFalsified) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(seed);
    GuestRecording guest = Record(kPrograms[1], seed);
    auto& blocks = guest.blocks().begin()->second;
    blocks[blocks.size() / 2].ip =
        TraceeAddr(blocks[blocks.size() / 2].ip.as_int() + 1);
    SolveOptions options;
    options.time_limit_s = 3;
    const auto report = Solve(guest.recording(), options, nullptr);
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_NE(report->verdict, Verdict::kWitness);
  }
}

}  // namespace
}  // namespace clew::symbolic
