// Goal: what the constraint trace says is true: along the order of what
// happened, and of every other witness, each of its conditions holds, unless
// an assumption does not.
// Method: property; seeded guest recordings with short and long blocks. Oracle:
// the solver's checker, which carries the accesses out one after another.
#include "symbolic/trace_builder.h"

#include <gtest/gtest.h>

#include "constraints/check_order.h"
#include "follower/recording.h"
#include "solver/search/guess_run.h"
#include "solver/search/window_search.h"
#include "tests/support/guest_cases.h"
#include "tests/support/guest_racy.h"
#include "tests/support/guest_straddle.h"

namespace clew::symbolic {
namespace {

using solver::FirstPoint;
using solver::LearnAlongPaths;
using solver::WindowSearch;
using solver::WordTable;
using test::GuestCase;
using test::GuestRecording;
using test::kGuestCases;
using test::RecordCase;

// A recording as constraints, and what they live on.
struct Built {
  explicit Built(const GuestRecording& guest,
                 std::span<const ScheduleStep> along = {})
      : session(std::move(
            follower::OpenedRecording::Open(guest.recording()).value())),
        words(session->start().thread_count(), 0) {
    LearnAlongPaths(*FirstPoint(session->start(), 0, {}), ~uint64_t{0},
                    guest.recording().failure, words, nullptr);
    trace = BuildTrace(session->start(), words.ContestedWords(), pool,
                       {.along = along})
                .value();
  }

  std::unique_ptr<follower::OpenedRecording> session;
  WordTable words;
  constraints::ExprPool pool;
  BuiltTrace trace;
};

// What does not hold along the schedule; empty: all of it does.
std::string Disagreement(const Built& built,
                         const std::vector<ScheduleStep>& steps) {
  const auto order = AccessOrderOf(built.trace, built.session->tape(), steps);
  EXPECT_EQ(order.size(), built.trace.trace.access_count());
  const Status status = constraints::CheckOrder(built.trace.trace, order);
  return status ? "" : status.error().message;
}

bool IsAssumption(const std::string& disagreement) {
  return disagreement.find("as in one run") != std::string::npos;
}

TEST(TraceBuilderTest, EveryConditionHoldsAlongWhatHappened) {
  uint64_t conditions = 0;
  for (const GuestCase& guest_case : kGuestCases) {
    for (const uint64_t window_ticks : {64u, 1024u}) {
      for (uint64_t seed = 1; seed <= 6; ++seed) {
        SCOPED_TRACE(fmt::format("{}, window {}, seed {}", guest_case.name,
                                 window_ticks, seed));
        const GuestRecording guest = RecordCase(guest_case, seed, window_ticks);
        const Built built(guest);
        EXPECT_EQ(built.trace.insns_run, guest.truth().insns);
        const Status valid = constraints::Validate(built.trace.trace);
        EXPECT_TRUE(valid) << valid.error().message;
        EXPECT_EQ(Disagreement(built, guest.truth().schedule), "");
        conditions += built.trace.trace.path.size();
      }
    }
  }
  EXPECT_GT(conditions, 3000u);
}

// The counter's word is traced, the constant's is not: nobody writes it.
TEST(TraceBuilderTest, AnAccessOfATracedAndAnotherWordKeepsTheOther) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const GuestRecording guest =
        RecordCase({"straddle", test::GuestStraddle, 10}, seed);
    ASSERT_NE(guest.truth().exit_status, 2);
    const Built built(guest);
    EXPECT_GT(built.trace.trace.path.size(), 20u);
    EXPECT_EQ(Disagreement(built, guest.truth().schedule), "");
  }
}

TEST(TraceBuilderTest, EveryConditionHoldsAlongAWitness) {
  uint64_t held = 0;
  uint64_t assumptions_failed = 0;
  for (const GuestCase& guest_case : kGuestCases) {
    for (uint64_t seed = 1; seed <= 6; ++seed) {
      SCOPED_TRACE(fmt::format("{}, seed {}", guest_case.name, seed));
      const GuestRecording guest = RecordCase(guest_case, seed);
      const Built built(guest);
      WindowSearch search(built.session->start(), guest.recording().failure, 0,
                          {}, nullptr);
      const auto turn = search.Run(10);
      ASSERT_TRUE(turn) << turn.error().message;
      if (*turn == solver::WindowTurn::kNotYet) {
        continue;
      }
      const std::string wrong = Disagreement(built, search.report().steps);
      if (IsAssumption(wrong)) {
        ++assumptions_failed;
      } else {
        EXPECT_EQ(wrong, "");
        ++held;
      }
    }
  }
  EXPECT_GT(held, 20u);
  EXPECT_LT(assumptions_failed, 6u);
}

// Where addresses are data the guess is soon wrong about them. Along what
// happened they are right, and all of the formula holds, assumptions included.
TEST(TraceBuilderTest, AlongWhatHappenedEvenItsAssumptionsHold) {
  uint64_t guesses_wrong = 0;
  const GuestCase racy = {"racy index", test::GuestRacyIndex, 40};
  for (const GuestCase& guest_case : {racy, kGuestCases[3], kGuestCases[4]}) {
    for (uint64_t seed = 1; seed <= 6; ++seed) {
      SCOPED_TRACE(fmt::format("{}, seed {}", guest_case.name, seed));
      const GuestRecording guest = RecordCase(guest_case, seed);
      guesses_wrong += Built(guest).trace.consistent ? 0 : 1;
      const Built built(guest, guest.truth().schedule);
      EXPECT_TRUE(built.trace.consistent);
      EXPECT_EQ(built.trace.insns_run, guest.truth().insns);
      EXPECT_EQ(Disagreement(built, guest.truth().schedule), "");
    }
  }
  EXPECT_GT(guesses_wrong, 6u);
}

// A run that has left the recorded paths asserts no address any more: without
// that, no order of the racy index would satisfy its formula.
TEST(TraceBuilderTest, BehindADepartureNoAddressIsAsserted) {
  uint64_t departed = 0;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    const GuestRecording guest =
        RecordCase({"racy index", test::GuestRacyIndex, 40}, seed);
    const Built guessed(guest);
    const Built true_one(guest, guest.truth().schedule);
    const auto assumptions = [](const Built& built) {
      return built.trace.trace.path.size() -
             WithoutAssumptions(built.trace).path.size();
    };
    ASSERT_GT(assumptions(true_one), 100u);
    if (!guessed.trace.consistent) {
      ++departed;
      EXPECT_LT(assumptions(guessed), assumptions(true_one));
    }
  }
  EXPECT_GT(departed, 3u);
}

// What a thread has read comes to another one through a word that nobody
// contests.
TEST(TraceBuilderTest, WordsThroughWhichValuesCrossThreadsAreTraced) {
  uint64_t crossed = 0;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const GuestRecording guest =
        RecordCase({"results", test::GuestLeavesResults, 30}, seed, 64);
    const Built built(guest);
    const Status valid = constraints::Validate(built.trace.trace);
    EXPECT_TRUE(valid) << valid.error().message;
    std::unordered_set<uint64_t> traced;
    for (const auto& thread : built.trace.trace.threads) {
      for (const auto& access : thread.accesses) {
        traced.insert(access.addr.as_int() / 8);
      }
    }
    crossed += traced.size() > built.words.ContestedWords().size() ? 1 : 0;
  }
  EXPECT_GT(crossed, 3u);
}

}  // namespace
}  // namespace clew::symbolic
