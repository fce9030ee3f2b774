// Goal: from paths, inputs and rough times alone, Solve finds a schedule that
// an independent run accepts, for runs that fail and runs that do not; and it
// claims none where the evidence was falsified.
// Method: property, seeded interleavings of small guest programs. Oracle: the
// guest recorder's own truth, and the independent checker.
#include "solver/solve.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <variant>

#include "constraints/verdict.h"
#include "solver/check.h"
#include "tests/solver/time_limit.h"
#include "tests/support/guest_cases.h"
#include "tests/support/guest_racy.h"

namespace clew::solver {
namespace {

using constraints::Verdict;
using test::FalsifyPath;
using test::GuestCase;
using test::GuestRecording;
using test::kGuestCases;
using test::RecordCase;

TEST(CheckScheduleTest, AcceptsWhatHappenedAndEndsInItsMemory) {
  for (const GuestCase& guest_case : kGuestCases) {
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      SCOPED_TRACE(fmt::format("{}, seed {}", guest_case.name, seed));
      const GuestRecording guest = RecordCase(guest_case, seed);
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
  const GuestRecording guest = RecordCase(kGuestCases[0], 3, 64);
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

// The step is permitted where it begins, and not where it ends.
TEST(CheckScheduleTest, RefusesAStepThatRunsOnAgainstTheOrderOfTime) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    const GuestRecording guest =
        RecordCase({"neighbours", test::GuestNeighbours, 200}, seed, 64);
    auto steps = guest.truth().schedule;
    const auto middle =
        std::find_if(steps.begin() + steps.size() / 2, steps.end(),
                     [](const auto& step) { return step.thread != Tid(100); });
    ASSERT_NE(middle, steps.end());
    for (const ScheduleStep& step : guest.truth().schedule) {
      if (step.thread == middle->thread) {
        middle->until_insn = step.until_insn;  // its end
      }
    }
    const auto report = CheckSchedule(guest.recording(), steps, nullptr);
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_NE(report->disagreement.value_or("").find("order of time"),
              std::string::npos)
        << report->disagreement.value_or("none");
  }
}

TEST(SolveTest, FindsAWitnessForEveryRecordedRun) {
  uint64_t guess_failed = 0;
  for (const GuestCase& guest_case : kGuestCases) {
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      SCOPED_TRACE(fmt::format("{}, seed {}", guest_case.name, seed));
      const GuestRecording guest = RecordCase(guest_case, seed);
      SolveOptions options;
      options.time_limit_s = kLimitS;
      const auto report = Solve(guest.recording(), options, nullptr);
      ASSERT_TRUE(report) << report.error().message;
      EXPECT_EQ(report->verdict, Verdict::kWitness)
          << report->reason << "; windows: " << report->windows.furthest.text
          << "; whole: " << report->whole.answer.deepest_contradiction;
      guess_failed += report->windows.guess_was_enough ? 0 : 1;
    }
  }
  // Otherwise the search was not tested.
  EXPECT_GT(guess_failed, 5u);
}

TEST(SolveTest, FindsAWitnessWhereWaitsWereBegunAnew) {
  uint64_t late_refusals = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    GuestRecording guest = GuestRecording::Make(
        test::GuestMutexCounter, 20, {.seed = seed, .interrupt_one_in = 2});
    for (const auto& [tid, inputs] : guest.inputs()) {
      for (const InputRecord& record : inputs) {
        const auto* const call = std::get_if<SyscallInput>(&record);
        late_refusals +=
            call != nullptr && call->result == -EAGAIN && TookTime(*call);
      }
    }
    SolveOptions options;
    options.time_limit_s = kLimitS;
    const auto report = Solve(guest.recording(), options, nullptr);
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_EQ(report->verdict, Verdict::kWitness)
        << report->reason << "; windows: " << report->windows.furthest.text;
  }
  EXPECT_GT(late_refusals, 100u);
}

TEST(SolveTest, BeginsAnewByOtherSeedsWhereItIsStuck) {
  GuestRecording guest =
      RecordCase({"racy index", test::GuestRacyIndex, 200}, 1, 8192);
  FalsifyPath(guest);
  SolveOptions options;
  uint64_t restarts = 0;
  // Nothing but time ends this search: longer where the machine is slow.
  for (double seconds = 4; restarts == 0 && seconds < kLimitS; seconds *= 4) {
    options.time_limit_s = seconds;
    const auto report = Solve(guest.recording(), options, nullptr);
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_NE(report->verdict, Verdict::kWitness);
    restarts = report->restarts;
  }
  EXPECT_GT(restarts, 0u);
}

class FalsifiedTest : public testing::TestWithParam<uint64_t> {};

TEST_P(FalsifiedTest, NothingIsClaimed) {
  GuestRecording guest = RecordCase(kGuestCases[1], GetParam());
  FalsifyPath(guest);
  SolveOptions options;
  options.time_limit_s = 3;
  const auto report = Solve(guest.recording(), options, nullptr);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_NE(report->verdict, Verdict::kWitness);
}

INSTANTIATE_TEST_SUITE_P(Seeds, FalsifiedTest, testing::Values(1, 2));
// In tools/test --all.
INSTANTIATE_TEST_SUITE_P(More, FalsifiedTest, testing::Range<uint64_t>(3, 6));

}  // namespace
}  // namespace clew::solver
