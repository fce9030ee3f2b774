// Goal: the guess stays within the time bounds, the next thread is the earliest
// one that may go on, and runs of the guess keep edges, leave points that
// replay to where they are, and stop where they say.
// Method: property; seeded guest recordings. Oracle: slow references written
// here, state digests, the recorded bounds.
#include "solver/search/guess_run.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "common/digest.h"
#include "follower/earliest.h"
#include "follower/recording.h"
#include "solver/check.h"
#include "tests/support/guest_cases.h"

namespace clew::solver {
namespace {

using test::GuestCase;
using test::GuestRecording;
using test::kGuestCases;
using test::RecordCase;

std::unique_ptr<follower::OpenedRecording> Open(const GuestRecording& guest) {
  auto session = follower::OpenedRecording::Open(guest.recording());
  EXPECT_TRUE(session) << session.error().message;
  return std::move(*session);
}

// Steps of the true schedule, cut into pieces of at most `piece` instructions.
template <class Visit>
void AlongTheTruth(const GuestRecording& guest, follower::Process& process,
                   uint64_t piece, Visit visit) {
  for (const ScheduleStep& step : guest.truth().schedule) {
    const size_t thread = process.tape().IndexOf(step.thread).value();
    while (process.thread(thread).retired < step.until_insn) {
      visit();
      const auto advance = process.Run(
          thread,
          std::min(step.until_insn, process.thread(thread).retired + piece));
      ASSERT_TRUE(advance) << advance.error().message;
      ASSERT_EQ(advance->stop, follower::Advance::Stop::kReached)
          << process.contradiction().text;
    }
  }
}

TEST(GuessTest, KeysLieWithinTheBoundsAndGrow) {
  for (const GuestCase& guest_case : kGuestCases) {
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      SCOPED_TRACE(fmt::format("{}, seed {}", guest_case.name, seed));
      const GuestRecording guest = RecordCase(guest_case, seed);
      const auto session = Open(guest);
      follower::Process process = session->start();
      follower::Guess guess(process, {.seed = seed, .grain_insns = 16});
      std::vector<double> last(process.thread_count(), 0);
      AlongTheTruth(guest, process, 3, [&] {
        for (size_t t = 0; t < process.thread_count(); ++t) {
          const auto block = process.NextBlock(t);
          ASSERT_TRUE(block);
          if (*block == nullptr) {
            continue;
          }
          const TscInterval time = (*block)->time;
          const auto key = guess.KeyOf(process, t);
          const auto group_end = guess.GroupEnd(process, t);
          const auto grain_end = guess.GrainEnd(process, t);
          ASSERT_TRUE(key && group_end && grain_end);
          ASSERT_GE(*key, static_cast<double>(time.lo.as_int()));
          ASSERT_GE(*key, last[t]);
          last[t] = *key;
          ASSERT_GT(*grain_end, process.thread(t).retired);
          ASSERT_LE(*grain_end, *group_end);
          // A guess of its own, in the middle of a run, says the same.
          follower::Guess fresh(process, {.seed = seed, .grain_insns = 16});
          ASSERT_EQ(*fresh.GrainEnd(process, t), *grain_end);
        }
      });
    }
  }
}

// Looks at everybody.
Result<std::optional<follower::Earliest>> SlowEarliest(
    const follower::Process& process, follower::OrderRules& rules,
    follower::Guess& guess, uint64_t allowed) {
  std::optional<follower::Earliest> best;
  for (size_t t = 0; t < process.thread_count(); ++t) {
    CLEW_ASSIGN_OR_RETURN(can_run, process.CanRun(t));
    if (!can_run || (allowed >> t & 1) == 0) {
      continue;
    }
    CLEW_ASSIGN_OR_RETURN(permitted, rules.Permits(process, t));
    CLEW_ASSIGN_OR_RETURN(key, guess.KeyOf(process, t));
    if (permitted && (!best || key < best->key)) {
      best = follower::Earliest{.thread = t, .key = key};
    }
  }
  return best;
}

// The fast one goes first, while threads far ahead are not on the tape yet.
TEST(EarliestTest, ItIsTheOneThatLookingAtEverybodyFinds) {
  uint64_t found = 0;
  for (const GuestCase& guest_case : kGuestCases) {
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      SCOPED_TRACE(fmt::format("{}, seed {}", guest_case.name, seed));
      const GuestRecording guest = RecordCase(guest_case, seed, 64);
      const auto session = Open(guest);
      const auto slow_session = Open(guest);
      follower::Process process = session->start();
      follower::Process slow_process = slow_session->start();
      follower::OrderRules rules(process, 0);
      follower::OrderRules slow_rules(slow_process, 0);
      follower::Guess guess(process, {});
      follower::Guess slow_guess(slow_process, {});
      Random random(seed);
      for (int step = 0; step < 3000; ++step) {
        const uint64_t allowed = random.Below(16) == 0 ? random.Next() : ~0ull;
        const auto fast = follower::FindEarliest(
            process, rules, [&](size_t t) { return (allowed >> t & 1) != 0; },
            [&](size_t t) { return guess.KeyOf(process, t); });
        const auto slow =
            SlowEarliest(slow_process, slow_rules, slow_guess, allowed);
        ASSERT_TRUE(fast && slow);
        ASSERT_EQ(fast->has_value(), slow->has_value()) << "step " << step;
        if (!*fast) {
          if (allowed == ~0ull) {
            break;
          }
          continue;
        }
        // Equal keys: either.
        ASSERT_EQ((*fast)->key, (*slow)->key) << "step " << step;
        ++found;
        const size_t thread = (*fast)->thread;
        const uint64_t until =
            process.thread(thread).retired + 1 + random.Below(5);
        const auto ran = process.Run(thread, until);
        const auto slow_ran = slow_process.Run(thread, until);
        ASSERT_TRUE(ran && slow_ran);
        if (ran->stop == follower::Advance::Stop::kContradiction) {
          break;
        }
      }
    }
  }
  EXPECT_GT(found, 1000u);
}

// The points of a run, first to last.
std::vector<std::shared_ptr<RunPoint>> PointsOf(const RunOutcome& outcome) {
  std::vector<std::shared_ptr<RunPoint>> points;
  for (auto point = outcome.last; point != nullptr; point = point->previous) {
    points.insert(points.begin(), point);
  }
  return points;
}

std::shared_ptr<RunPoint> FirstWithDigest(const follower::Process& start) {
  follower::Process copy = start;
  copy.mutable_memory().EnableDigest();
  return FirstPoint(copy, 0, {});
}

TEST(GuessRunTest, TheStepsUpToAPointLeadToItsState) {
  uint64_t seen = 0;
  for (const GuestCase& guest_case : kGuestCases) {
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      SCOPED_TRACE(fmt::format("{}, seed {}", guest_case.name, seed));
      const GuestRecording guest = RecordCase(guest_case, seed);
      const auto session = Open(guest);
      const auto first = FirstWithDigest(session->start());
      GuessRunner runner(guest.recording().failure, nullptr,
                         {.point_insns = 50}, nullptr);
      const auto outcome = runner.Run(first);
      ASSERT_TRUE(outcome) << outcome.error().message;
      const auto points = PointsOf(*outcome);
      ASSERT_EQ(points.front(), first);
      for (const auto& point : points) {
        follower::Process process = first->process;
        for (const ScheduleStep& step : CollectSteps(*point, {})) {
          const auto advance = process.Run(
              process.tape().IndexOf(step.thread).value(), step.until_insn);
          ASSERT_TRUE(advance) << advance.error().message;
        }
        ASSERT_EQ(process.StateDigest(), point->process.StateDigest());
        ++seen;
      }
      // The further back, the fewer: not one for each 50 instructions.
      EXPECT_LE(points.size(), 8 + outcome->retired_total / 100);
      if (outcome->end == RunOutcome::End::kWitness) {
        const auto check = CheckSchedule(
            guest.recording(), CollectSteps(*outcome->last, outcome->steps),
            nullptr);
        ASSERT_TRUE(check) << check.error().message;
        EXPECT_EQ(check->disagreement.value_or(""), "");
      }
    }
  }
  EXPECT_GT(seen, 40u);
}

TEST(GuessRunTest, PointsAndTapeFarBackAreGivenUp) {
  const GuestRecording guest = RecordCase(kGuestCases[2], 2);
  const auto session = Open(guest);
  GuessRunner runner(guest.recording().failure, nullptr,
                     {.point_insns = 50, .keep_insns = 200}, nullptr);
  const auto outcome = runner.Run(FirstPoint(session->start(), 0, {}));
  ASSERT_TRUE(outcome) << outcome.error().message;
  ASSERT_GT(outcome->retired_total, 400u);
  const auto points = PointsOf(*outcome);
  const uint64_t last = points.back()->process.retired_total();
  EXPECT_GE(last - points.front()->process.retired_total(), 200u);
  EXPECT_LT(last - points[1]->process.retired_total(), 200u);
  EXPECT_FALSE(session->tape().HasBeginning());
}

TEST(GuessRunTest, IsCutOffWhereItIsToldTo) {
  const GuestRecording guest = RecordCase(kGuestCases[0], 1);
  const auto session = Open(guest);
  GuessRunner runner(guest.recording().failure, nullptr, {.insns_max = 200},
                     nullptr);
  const auto outcome = runner.Run(FirstPoint(session->start(), 0, {}));
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(outcome->end, RunOutcome::End::kCutOff);
  EXPECT_GE(outcome->retired_total, 200u);
  EXPECT_LT(outcome->retired_total, 400u);  // one grain more at most
  EXPECT_EQ(runner.insns_run(), outcome->retired_total);
}

// How much `thread` had retired after each step is what the edges are about.
bool Keeps(const std::vector<ScheduleStep>& steps,
           const follower::Process& process, const OrderEdge& edge) {
  uint64_t before = 0;
  for (const ScheduleStep& step : steps) {
    const size_t thread = process.tape().IndexOf(step.thread).value();
    if (thread == edge.before.thread) {
      before = step.until_insn;
    } else if (thread == edge.after.thread &&
               step.until_insn > edge.after.insn) {
      return before > edge.before.insn;
    }
  }
  return true;
}

TEST(GuessRunTest, EdgesAreKeptAsFarAsTheRunComes) {
  uint64_t turned = 0;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(seed);
    const GuestRecording guest = RecordCase(kGuestCases[2], seed, 4096);
    const auto session = Open(guest);
    const follower::Process& start = session->start();
    GuessRunner runner(guest.recording().failure, nullptr, {}, nullptr);
    const auto first = FirstPoint(start, 0, {});
    const auto plain = runner.Run(first);
    ASSERT_TRUE(plain) << plain.error().message;
    Random random(seed);
    std::vector<OrderEdge> edges;
    for (uint32_t thread = 1; thread + 1 < start.thread_count(); ++thread) {
      edges.push_back({.before = {thread + 1, 5 + random.Below(100)},
                       .after = {thread, 5 + random.Below(100)}});
    }
    const auto outcome = runner.Run(first, edges);
    ASSERT_TRUE(outcome) << outcome.error().message;
    for (const OrderEdge& edge : edges) {
      EXPECT_TRUE(
          Keeps(CollectSteps(*outcome->last, outcome->steps), start, edge));
      turned +=
          Keeps(CollectSteps(*plain->last, plain->steps), start, edge) ? 0 : 1;
    }
  }
  EXPECT_GT(turned, 2u);
}

TEST(GuessRunTest, LearningComesToTheEndOfEveryRecording) {
  uint64_t contested = 0;
  for (const GuestCase& guest_case : kGuestCases) {
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      SCOPED_TRACE(fmt::format("{}, seed {}", guest_case.name, seed));
      const GuestRecording guest = RecordCase(guest_case, seed);
      const auto session = Open(guest);
      WordTable words(session->start().thread_count(), 0);
      const LearnReport report =
          LearnAlongPaths(*FirstPoint(session->start(), 0, {}), ~uint64_t{0},
                          guest.recording().failure, words, nullptr);
      EXPECT_TRUE(report.to_the_end);
      EXPECT_EQ(report.insns_run, 2 * guest.truth().insns);
      contested += words.contested_count();
    }
  }
  EXPECT_GT(contested, 1000u);
}

// Threads that use neighbours of an array each share nothing.
TEST(GuessRunTest, NeighboursInAnArrayAreNotShared) {
  const GuestRecording guest =
      RecordCase({"neighbours", test::GuestNeighbours, 50}, 1);
  const auto session = Open(guest);
  WordTable words(session->start().thread_count(), 0);
  LearnAlongPaths(*FirstPoint(session->start(), 0, {}), ~uint64_t{0},
                  guest.recording().failure, words, nullptr);
  EXPECT_GT(words.contested_count(), 0u);  // what they wait with
  for (const volatile uint32_t& neighbour : test::guest_neighbours) {
    EXPECT_FALSE(
        words.IsContestedWord(WordOf(reinterpret_cast<uintptr_t>(&neighbour))));
  }
}

}  // namespace
}  // namespace clew::solver
