// Goal: the window search alone finds a witness for every recorded run, in
// turns of any length; it never has one that the checker refuses.
// Method: property; seeded guest recordings with time windows of several sizes,
// of what takes long more in tools/test --all.
// Oracle: the independent checker.
#include "solver/search/window_search.h"

#include <gtest/gtest.h>

#include "follower/recording.h"
#include "solver/check.h"
#include "tests/solver/time_limit.h"
#include "tests/support/guest_cases.h"

namespace clew::solver {
namespace {

using test::FalsifyPath;
using test::GuestCase;
using test::GuestRecording;
using test::kGuestCases;
using test::RecordCase;

constexpr uint64_t kSeeds = 8;
constexpr int kTurnsMax = 100'000'000;

// The guess for `guess_s` seconds at most, then turns of `turn_s` until found,
// at most `turns_max` of them; the witness, if there is one, has been checked.
Result<WindowSearchReport> Search(const GuestRecording& guest, double guess_s,
                                  double turn_s, int turns_max,
                                  const WindowSearchOptions& options = {}) {
  CLEW_ASSIGN_OR_RETURN(session,
                        follower::OpenedRecording::Open(guest.recording()));
  WindowSearch search(session->start(), guest.recording().failure,
                      guest.recording().clock_slack_ticks, options, nullptr);
  CLEW_ASSIGN_OR_RETURN(last, search.TryGuess(guess_s));
  for (int i = 0; last == WindowTurn::kNotYet && i < turns_max; ++i) {
    CLEW_ASSIGN_OR_RETURN(next, search.Run(turn_s));
    last = next;
  }
  const bool found = last == WindowTurn::kWitness;
  EXPECT_EQ(search.report().found, found);
  if (found) {
    CLEW_ASSIGN_OR_RETURN(check, CheckSchedule(guest.recording(),
                                               search.report().steps, nullptr));
    EXPECT_EQ(check.disagreement.value_or(""), "");
    EXPECT_EQ(check.insns, guest.truth().insns);
  }
  return search.report();
}

TEST(WindowSearchTest, FindsAWitnessForEveryRecordedRun) {
  uint64_t searched = 0;
  for (const GuestCase& guest_case : kGuestCases) {
    for (const uint64_t window_ticks : {256u, 1024u, 4096u}) {
      for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
        SCOPED_TRACE(fmt::format("{}, window {}, seed {}", guest_case.name,
                                 window_ticks, seed));
        const GuestRecording guest = RecordCase(guest_case, seed, window_ticks);
        const auto report = Search(guest, kLimitS, kLimitS, 1);
        ASSERT_TRUE(report) << report.error().message;
        EXPECT_TRUE(report->found)
            << report->windows << " windows; " << report->furthest.text;
        searched += report->windows > 0 ? 1 : 0;
      }
    }
  }
  // Otherwise only the guess was tested.
  EXPECT_GT(searched, 20u);
}

// A short turn ends in the middle of a search, which goes on in the next one.
TEST(WindowSearchTest, ManyShortTurnsDoAsWellAsALongOne) {
  uint64_t searched = 0;
  for (const GuestCase& guest_case : kGuestCases) {
    for (uint64_t seed = 1; seed <= kSeeds / 2; ++seed) {
      SCOPED_TRACE(fmt::format("{}, seed {}", guest_case.name, seed));
      const GuestRecording guest = RecordCase(guest_case, seed);
      const auto report = Search(guest, 0.001, 0.001, kTurnsMax);
      ASSERT_TRUE(report) << report.error().message;
      EXPECT_TRUE(report->found) << report->windows << " windows";
      searched += report->windows > 0 ? 1 : 0;
    }
  }
  EXPECT_GT(searched, 5u);
}

// How many seeds.
class SeedsTest : public testing::TestWithParam<uint64_t> {};

// Windows and stretches of a few hundred instructions: many seams.
TEST_P(SeedsTest, SmallWindowsAndStretchesJoinToAWitness) {
  WindowSearchOptions options;
  options.run.point_insns = 100;
  options.first_back_insns = 100;
  options.beyond_insns = 50;
  options.beyond_insns_max = 200;
  uint64_t windows = 0;
  for (const GuestCase& guest_case : kGuestCases) {
    for (uint64_t seed = 1; seed <= GetParam(); ++seed) {
      SCOPED_TRACE(fmt::format("{}, seed {}", guest_case.name, seed));
      const GuestRecording guest = RecordCase(guest_case, seed);
      const auto report = Search(guest, kLimitS, kLimitS, 1, options);
      ASSERT_TRUE(report) << report.error().message;
      EXPECT_TRUE(report->found) << report->windows << " windows";
      windows += report->windows;
    }
  }
  EXPECT_GT(windows, 5 * GetParam());
}

// What a call was given says how many updates were lost, and no branch says
// which. Of the steps of one variant, most would go into the order of the last
// updates.
TEST_P(SeedsTest, FindsTheSumThatWasToldWithoutTryingEveryLastOrder) {
  constexpr uint64_t kSumStepsMax = 700'000;
  uint64_t searched = 0;
  for (const uint64_t rounds : {50u, 150u}) {
    for (uint64_t seed = 1; seed <= GetParam(); ++seed) {
      SCOPED_TRACE(fmt::format("{} rounds, seed {}", rounds, seed));
      const GuestRecording guest =
          RecordCase({"sum", test::GuestTellsSum, rounds}, seed, 1 << 15);
      const auto session = follower::OpenedRecording::Open(guest.recording());
      ASSERT_TRUE(session) << session.error().message;
      WindowSearch search((*session)->start(), guest.recording().failure, 0, {},
                          nullptr);
      ASSERT_TRUE(search.TryGuess(kLimitS));
      while (!search.report().found &&
             search.report().search_steps < kSumStepsMax) {
        ASSERT_TRUE(search.Run(0.01));
      }
      EXPECT_TRUE(search.report().found)
          << search.report().search_steps << " steps; "
          << search.report().furthest.text;
      searched += search.report().windows > 0 ? 1 : 0;
    }
  }
  EXPECT_GT(searched, GetParam());
}

TEST(WindowSearchTest, HasNoWitnessWhereAPathWasFalsified) {
  for (const GuestCase& guest_case : kGuestCases) {
    for (uint64_t seed = 1; seed <= 2; ++seed) {
      SCOPED_TRACE(fmt::format("{}, seed {}", guest_case.name, seed));
      GuestRecording guest = RecordCase(guest_case, seed);
      FalsifyPath(guest);
      // The guess comes to the contradiction, however long that takes.
      const auto report = Search(guest, kLimitS, 0.1, 3);
      ASSERT_TRUE(report) << report.error().message;
      EXPECT_FALSE(report->found);
      EXPECT_GT(report->contradictions, 0u);
      EXPECT_NE(report->furthest.text, "");
    }
  }
}

// What the kernel is said to have done may be possible otherwise; then the
// witness is one of the falsified recording (Search checks it).
TEST_P(SeedsTest, HasOnlyTrueWitnessesWhereACallWasFalsified) {
  uint64_t refused = 0;
  for (uint64_t seed = 1; seed <= GetParam(); ++seed) {
    SCOPED_TRACE(seed);
    GuestRecording guest = RecordCase(kGuestCases[1], seed);
    for (auto& [tid, records] : guest.inputs()) {
      auto& call = std::get<SyscallInput>(records[records.size() / 2]);
      call.result = call.result.value_or(0) == 0 ? 1 : 0;
    }
    const auto report = Search(guest, kLimitS, 0.1, 3);
    refused += report && report->found ? 0 : 1;
  }
  EXPECT_GT(refused, 0u);
}

INSTANTIATE_TEST_SUITE_P(Few, SeedsTest, testing::Values(2));
// In tools/test --all.
INSTANTIATE_TEST_SUITE_P(More, SeedsTest, testing::Values(kSeeds));

}  // namespace
}  // namespace clew::solver
