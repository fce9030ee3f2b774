// Goal: of a program and its children the failure is kept that the others came
// of. Method: exhaustive; a program and two children, each of which ended well,
// failed by itself or by a status, in every order. Oracle: the rule in words,
// in another shape.
#include "recorder/software/child_recorders.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <array>
#include <optional>
#include <vector>

#include "common/digest.h"

namespace clew::recorder {
namespace {

enum class End : uint8_t { kWell, kBySignal, kByStatus };

constexpr std::array kEnds = {End::kWell, End::kBySignal, End::kByStatus};

Failure FailureOf(FailureKind kind, int32_t signal) {
  Failure failure;
  failure.kind = kind;
  failure.signal = signal;
  return failure;
}

struct Process {
  End end;
  uint64_t at_ns;
};

RecordOutcome OutcomeOf(const Process& run) {
  RecordOutcome outcome;
  outcome.ended_ns = run.at_ns;
  switch (run.end) {
    case End::kWell:
      break;
    case End::kBySignal:
      outcome.failure.kind = FailureKind::kSignal;
      outcome.failure.signal = SIGSEGV;
      break;
    case End::kByStatus:
      outcome.failure.kind = FailureKind::kExit;
      outcome.failure.exit_status = 1;
      break;
  }
  return outcome;
}

// 0: the program, also where nothing failed; 1, 2: that child. All processes in
// the order of their ends.
int Wanted(const Process& program, const Process& one, const Process& two,
           bool names_status) {
  const std::array<const Process*, 3> runs = {&program, &one, &two};
  const auto fails_by_itself = [&](const Process& run) {
    return run.end == End::kBySignal ||
           (run.end == End::kByStatus && !names_status);
  };
  std::optional<int> first;
  for (int i = 0; i < 3; ++i) {
    if (fails_by_itself(*runs[i]) &&
        (!first || runs[i]->at_ns < runs[*first]->at_ns)) {
      first = i;
    }
  }
  if (first) {
    return *first;
  }
  int last = 0;
  for (int i = 1; i < 3; ++i) {
    const bool is_before = runs[i]->at_ns < program.at_ns;
    if (program.end == End::kByStatus && runs[i]->end == End::kByStatus &&
        is_before && (last == 0 || runs[i]->at_ns > runs[last]->at_ns)) {
      last = i;
    }
  }
  return last;
}

TEST(ChooseFailureTest, IsTheOneThatTheOthersCameOf) {
  constexpr std::array<std::array<uint64_t, 3>, 6> kOrders = {
      {{1, 2, 3}, {1, 3, 2}, {2, 1, 3}, {2, 3, 1}, {3, 1, 2}, {3, 2, 1}}};
  for (const bool names_status : {false, true}) {
    const FailOn fail_on = {.rule = names_status ? FailOn::Rule::kDiffers
                                                 : FailOn::Rule::kPanics};
    for (const auto& order : kOrders) {
      for (const End program : kEnds) {
        for (const End one : kEnds) {
          for (const End two : kEnds) {
            const Process runs[] = {
                {program, order[0]}, {one, order[1]}, {two, order[2]}};
            std::vector<ChildRecorders::Failed> failed;
            for (int child = 1; child < 3; ++child) {
              if (runs[child].end != End::kWell) {
                failed.push_back(
                    {.child = child, .run = OutcomeOf(runs[child])});
              }
            }
            const auto* const chosen =
                ChooseFailure(OutcomeOf(runs[0]), failed, fail_on);
            ASSERT_EQ(chosen == nullptr ? 0 : chosen->child,
                      Wanted(runs[0], runs[1], runs[2], names_status))
                << static_cast<int>(program) << static_cast<int>(one)
                << static_cast<int>(two) << ", ends " << order[0] << order[1]
                << order[2] << ", a status is named: " << names_status;
          }
        }
      }
    }
  }
}

// However the program ends: what is left decides as all of them do.
TEST(ChooseFailureTest, IsTheSameWithoutThoseThatAreOvertaken) {
  Random random(5);
  for (int round = 0; round < 2000; ++round) {
    const FailOn fail_on = {.rule = random.Below(2) == 0
                                        ? FailOn::Rule::kDiffers
                                        : FailOn::Rule::kPanics};
    std::vector<ChildRecorders::Failed> all;
    const uint64_t count = random.Below(6);
    for (uint64_t i = 0; i < count; ++i) {
      const End end = random.Below(2) == 0 ? End::kBySignal : End::kByStatus;
      all.push_back({.child = static_cast<int32_t>(i + 1),
                     .run = OutcomeOf({end, random.Below(1000)})});
    }
    std::vector<ChildRecorders::Failed> left = all;
    const auto overtaken = TakeOvertaken(left, fail_on);
    EXPECT_EQ(left.size() + overtaken.size(), all.size());
    EXPECT_LE(left.size(), 2u);
    for (const End end : kEnds) {
      const RecordOutcome program = OutcomeOf({end, 1000 + random.Below(9)});
      const auto* const of_all = ChooseFailure(program, all, fail_on);
      const auto* const of_left = ChooseFailure(program, left, fail_on);
      ASSERT_EQ(of_all == nullptr, of_left == nullptr) << "round " << round;
      if (of_all != nullptr) {
        ASSERT_EQ(of_all->run.ended_ns, of_left->run.ended_ns)
            << "round " << round;
      }
    }
  }
}

TEST(ChooseFailureTest, ASignalOfAParentOrAReaderIsNone) {
  for (int signal = 1; signal < SIGRTMIN; ++signal) {
    const bool dumps =
        signal == SIGABRT || signal == SIGBUS || signal == SIGFPE ||
        signal == SIGILL || signal == SIGSEGV || signal == SIGSYS ||
        signal == SIGTRAP || signal == SIGXCPU || signal == SIGXFSZ;
    EXPECT_EQ(IsFailureOfChild(FailureOf(FailureKind::kSignal, signal)), dumps)
        << signal;
  }
  EXPECT_TRUE(IsFailureOfChild(FailureOf(FailureKind::kHang, 0)));
  EXPECT_FALSE(IsFailureOfChild(FailureOf(FailureKind::kTimeLimit, 0)));
  EXPECT_FALSE(IsFailureOfChild(FailureOf(FailureKind::kNone, 0)));
}

}  // namespace
}  // namespace clew::recorder
