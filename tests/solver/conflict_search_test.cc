// Goal: the promises of solver/search/conflict_search.h: what it calls a
// witness is one, each end can be reached, a search goes on after a deadline as
// if there had been none, and its points replay to where it came. Method:
// property; seeded guest recordings searched from their beginning. Oracle: the
// independent checker and the process's own state digests.
#include "solver/search/conflict_search.h"

#include <gtest/gtest.h>

#include "follower/recording.h"
#include "solver/check.h"
#include "tests/support/guest_cases.h"
#include "tests/support/guest_racy.h"

namespace clew::solver {
namespace {

using test::FalsifyPath;
using test::GuestCase;
using test::GuestRecording;
using test::kGuestCases;
using test::RecordCase;
using End = ConflictSearchReport::End;

// A recording with all that a search of it borrows.
struct Opened {
  explicit Opened(const GuestRecording& guest)
      : recording(guest.recording()),
        session(std::move(follower::OpenedRecording::Open(recording).value())),
        words(session->start().thread_count(), recording.clock_slack_ticks),
        first(FirstPoint(session->start(), recording.clock_slack_ticks, {})) {
    LearnAlongPaths(*first, ~uint64_t{0}, recording.failure, words, nullptr);
  }
  std::unique_ptr<ConflictSearch> Search(const ConflictSearchOptions& options) {
    return std::make_unique<ConflictSearch>(first->process, first->rules,
                                            first->guess, recording.failure,
                                            words, options);
  }

  const follower::Recording& recording;
  std::unique_ptr<follower::OpenedRecording> session;
  WordTable words;
  std::shared_ptr<RunPoint> first;
};

ConflictSearchOptions Variant(int number) {
  ConflictSearchOptions options;
  options.plain_alternatives = number % 2 == 0;
  options.conflict_steps = number < 2 ? 2 : 8;
  options.jitter_ticks = number < 2 ? 0 : 512;
  options.keeps_order = number == 0 || number == 3;
  options.burst_gap_insns = number == 4 ? 32 : 0;
  return options;
}

// How many seeds.
class WitnessTest : public testing::TestWithParam<uint64_t> {};

TEST_P(WitnessTest, WhatItCallsAWitnessTheCheckerAccepts) {
  for (int variant = 0; variant < 5; ++variant) {
    uint64_t witnesses = 0;
    uint64_t back_jumps = 0;
    for (const GuestCase& guest_case : kGuestCases) {
      for (uint64_t seed = 1; seed <= GetParam(); ++seed) {
        SCOPED_TRACE(fmt::format("{}, seed {}, variant {}", guest_case.name,
                                 seed, variant));
        const GuestRecording guest = RecordCase(guest_case, seed);
        Opened opened(guest);
        const auto search = opened.Search(Variant(variant));
        const auto report = search->Run();
        ASSERT_TRUE(report) << report.error().message;
        EXPECT_NE(report->end, End::kReached);
        EXPECT_NE(report->end, End::kDeadline);
        back_jumps += report->back_jumps;
        if (report->end != End::kWitness) {
          continue;
        }
        ++witnesses;
        const auto steps = CollectSteps(*search->TakePoints(opened.first), {});
        const auto check = CheckSchedule(opened.recording, steps, nullptr);
        ASSERT_TRUE(check) << check.error().message;
        EXPECT_EQ(check->disagreement.value_or(""), "");
      }
    }
    // Of five for each seed; not complete, so not all. Those recordings have
    // threads change every 30 instructions, in the middle of nearly every
    // burst.
    EXPECT_GT(6 * witnesses, GetParam() * (variant == 4 ? 3u : 20u))
        << "variant " << variant;
    EXPECT_GT(back_jumps, 0u) << "variant " << variant;
  }
}

INSTANTIATE_TEST_SUITE_P(Few, WitnessTest, testing::Values(3));
// In tools/test --all.
INSTANTIATE_TEST_SUITE_P(More, WitnessTest, testing::Values(6));

struct Totals {
  uint64_t witnesses = 0;
  uint64_t steps = 0;
};
// Of searches of a dozen recordings.
Totals SearchAll(const GuestCase& guest_case, ConflictSearchOptions options) {
  Totals totals;
  options.steps_max = 20'000;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    const GuestRecording guest = RecordCase(guest_case, seed);
    Opened opened(guest);
    const auto report = opened.Search(options)->Run();
    EXPECT_TRUE(report) << report.error().message;
    totals.witnesses += report->end == End::kWitness ? 1 : 0;
    totals.steps += report->steps;
  }
  return totals;
}

// Branches tell a bit of each racy value.
Totals SearchRacyIndices(bool keeps_order) {
  ConflictSearchOptions options;
  options.plain_alternatives = true;
  options.keeps_order = keeps_order;
  return SearchAll({"racy index", test::GuestRacyIndex, 12}, options);
}

TEST(ConflictSearchTest, FindsMoreInFewerStepsWhereItKeepsTheOrder) {
  const Totals kept = SearchRacyIndices(true);
  const Totals anew = SearchRacyIndices(false);
  EXPECT_GT(kept.witnesses, anew.witnesses);
  EXPECT_LT(2 * kept.steps, anew.steps);
}

// Loads and their compare-and-exchanges, torn apart by the guess in many
// places. Letting the others go on each time finds half of them.
TEST(ConflictSearchTest, WhoWasOvertakenIsGoneBackForAtOnce) {
  const Totals totals =
      SearchAll({"pushes", test::GuestPushes, 40}, Variant(1));
  EXPECT_GE(totals.witnesses, 10u);
  EXPECT_LT(totals.steps, 60'000u);
}

// Most orders tear copies apart, while few were. (Threads run for up to 2,000
// instructions at a time, a copy is some 60.)
TEST(ConflictSearchTest, FindsTornCopiesWhereOthersAreTakenAtOnce) {
  const GuestCase copies = {"copies", test::GuestCopies, 60, 2'000};
  ConflictSearchOptions options;
  options.plain_alternatives = true;
  const Totals apart = SearchAll(copies, options);
  options.burst_gap_insns = 32;
  const Totals at_once = SearchAll(copies, options);
  EXPECT_GE(at_once.witnesses, 2 * apart.witnesses);
  EXPECT_LT(3 * at_once.steps, 2 * apart.steps);
}

TEST(ConflictSearchTest, AFalsifiedPathIsRefutedOrTooMuchNeverFollowed) {
  uint64_t refuted = 0;
  for (const int variant : {0, 1, 4}) {
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      SCOPED_TRACE(fmt::format("seed {}, variant {}", seed, variant));
      GuestRecording guest = RecordCase({"", test::GuestLostUpdate, 2}, seed);
      FalsifyPath(guest);
      Opened opened(guest);
      ConflictSearchOptions options = Variant(variant);
      options.steps_max = 20'000;
      const auto report = opened.Search(options)->Run();
      ASSERT_TRUE(report) << report.error().message;
      EXPECT_TRUE(report->end == End::kRefuted || report->end == End::kLimit);
      EXPECT_GT(report->contradictions, 0u);
      EXPECT_NE(report->furthest.text, "");
      refuted += report->end == End::kRefuted ? 1 : 0;
    }
  }
  EXPECT_GT(refuted, 0u);
}

TEST(ConflictSearchTest, StopsAtItsLimitOfSteps) {
  const GuestRecording guest = RecordCase(kGuestCases[0], 1);
  Opened opened(guest);
  ConflictSearchOptions options;
  options.steps_max = 5;
  const auto report = opened.Search(options)->Run();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->end, End::kLimit);
  EXPECT_EQ(report->steps, 5u);
}

TEST(ConflictSearchTest, GoesOnAfterDeadlinesAsIfThereHadBeenNone) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    const GuestRecording guest = RecordCase(kGuestCases[0], seed);
    Opened at_once(guest);
    const auto expected = at_once.Search({})->Run();
    ASSERT_TRUE(expected) << expected.error().message;
    Opened in_turns(guest);
    const auto search = in_turns.Search({});
    auto report = search->Run(ConflictSearch::Clock::time_point::min());
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_EQ(report->end, End::kDeadline);
    uint64_t turns = 0;
    while (report->end == End::kDeadline && turns < 1'000'000) {
      report = search->Run(ConflictSearch::Clock::now());
      ASSERT_TRUE(report) << report.error().message;
      ++turns;
    }
    EXPECT_GT(turns, 2u);
    EXPECT_EQ(report->end, expected->end);
    EXPECT_EQ(report->steps, expected->steps);
    EXPECT_EQ(report->contradictions, expected->contradictions);
  }
}

void RunSteps(follower::Process& process,
              const std::vector<ScheduleStep>& steps) {
  for (const ScheduleStep& step : steps) {
    const auto thread = process.tape().IndexOf(step.thread);
    ASSERT_TRUE(thread);
    const auto advance = process.Run(*thread, step.until_insn);
    ASSERT_TRUE(advance) << advance.error().message;
    ASSERT_EQ(advance->stop, follower::Advance::Stop::kReached);
  }
}

// From each point, the steps up to every later one lead to its state.
void CheckPoints(const std::vector<std::shared_ptr<RunPoint>>& points) {
  for (size_t i = 0; i < points.size(); ++i) {
    follower::Process process = points[i]->process;
    process.mutable_memory().EnableRelativeDigest();
    for (size_t later = i + 1; later < points.size(); ++later) {
      RunSteps(process, points[later]->history->steps);
      EXPECT_EQ(process.retired_total(),
                points[later]->process.retired_total());
      for (size_t t = 0; t < process.thread_count(); ++t) {
        EXPECT_EQ(process.thread(t).retired,
                  points[later]->process.thread(t).retired);
      }
      // Both digests count from the state of points[i].
      follower::Process wanted = points[later]->process;
      EXPECT_EQ(process.StateDigest() - process.memory().digest(),
                wanted.StateDigest() - wanted.memory().digest());
      EXPECT_EQ(
          process.memory().digest(),
          wanted.memory().digest() - points[i]->process.memory().digest());
    }
  }
}

TEST(ConflictSearchTest, GoingOnFromEachPointLeadsToTheSameState) {
  uint64_t points_seen = 0;
  for (const GuestCase& guest_case : kGuestCases) {
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      SCOPED_TRACE(fmt::format("{}, seed {}", guest_case.name, seed));
      const GuestRecording guest = RecordCase(guest_case, seed);
      Opened opened(guest);
      opened.first->process.mutable_memory().EnableRelativeDigest();
      ConflictSearchOptions options;
      options.first_point_back = 16;
      options.burst_gap_insns = seed > 2 ? 32 : 0;
      options.goal_retired =
          seed % 2 == 0 ? ~uint64_t{0} : guest.truth().insns / 2;
      const auto search = opened.Search(options);
      const auto report = search->Run();
      ASSERT_TRUE(report) << report.error().message;
      if (report->end != End::kWitness && report->end != End::kReached) {
        continue;
      }
      std::vector<std::shared_ptr<RunPoint>> points;
      for (auto point = search->TakePoints(opened.first); point != nullptr;
           point = point->previous) {
        points.insert(points.begin(), point);
      }
      ASSERT_EQ(points.front(), opened.first);
      for (size_t i = 1; i < points.size(); ++i) {
        EXPECT_LT(points[i - 1]->process.retired_total(),
                  points[i]->process.retired_total());
      }
      CheckPoints(points);
      points_seen += points.size();
    }
  }
  EXPECT_GT(points_seen, 60u);
}

}  // namespace
}  // namespace clew::solver
