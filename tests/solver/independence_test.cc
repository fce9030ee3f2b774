// Goal: of a run that happened it is never said that a contradiction comes in
// every order; it is said of a falsified result that nothing contested stands
// behind, though there are several threads; not of one that a contested value
// is mixed with, in whatever way it got there.
// Method: property over seeded guest recordings: true ones, where the guess
// contradicts; and one whose first thread looks at results of calls while
// others race.
#include "solver/independence.h"

#include <gtest/gtest.h>

#include <atomic>
#include <variant>

#include "solver/search/guess_run.h"
#include "solver/solve.h"
#include "tests/solver/time_limit.h"
#include "tests/support/guest_cases.h"
#include "tests/support/guest_racy.h"

// Starts a thread that adds `value`, which it finds in a register, to the
// result of sched_yield.
extern "C" void SpawnWithRegister(uint64_t value, void* stack_top);
asm(R"(
    .text
    .globl SpawnWithRegister
    .type SpawnWithRegister, @function
SpawnWithRegister:
    mov %rdi, %r9
    mov $0x50f00, %edi
    xor %edx, %edx
    mov $56, %eax
    syscall
    test %eax, %eax
    jne 2f
    mov $24, %eax
    syscall
    add %r9, %rax
    cmp $1000, %rax
    jae 1f
    nop
1:  mov $60, %eax
    xor %edi, %edi
    syscall
    ud2
2:  ret
    .size SpawnWithRegister, .-SpawnWithRegister
)");

namespace clew::solver {
namespace {

using constraints::Verdict;
using test::GuestCase;
using test::GuestRecording;
using test::RecordCase;

constexpr uint64_t kYield = 24;
constexpr uint64_t kExitGroup = 231;
constexpr uint64_t kNoLimit = ~uint64_t{0};
constexpr int kWorkers = 2;

// How the contested value comes to what the result of the call is added to.
enum class Flow : uint64_t {
  kNone,    // it does not
  kAdded,   // by registers
  kStored,  // by memory that no other thread uses
  kIndex,   // as the place of what is loaded
  kFlag,    // as the flag of a comparison
  kVector,  // by a vector register and floating point
  kPlace,   // as the place of a store that may or may not be the one loaded
  kChild,   // in a register with which the thread was created
};

alignas(16) char race_stacks[kWorkers][4096];
alignas(16) char child_stack[4096];
std::atomic<uint64_t> race_finished;
volatile uint64_t racy;
volatile uint64_t of_the_first;
volatile uint64_t race_table[8];
volatile uint64_t large_sums;

void RaceBeside(uint64_t rounds) {
  for (uint64_t i = 0; i < rounds; ++i) {
    racy = racy + 1;
  }
  race_finished.fetch_add(1);
  while (true) {
    test::GuestSyscall(60, 0, 0, 0);  // exit
  }
}

// Always far below 1000.
uint64_t Through(Flow flow) {
  switch (flow) {
    case Flow::kNone:
      return 0;
    case Flow::kAdded:
      return racy;
    case Flow::kStored:
      of_the_first = racy;
      return of_the_first;
    case Flow::kIndex:
      return race_table[racy % 8];
    case Flow::kFlag:
      return static_cast<uint64_t>(racy > 3);
    case Flow::kVector:
      return static_cast<uint64_t>(static_cast<double>(racy) * 0.5);
    case Flow::kPlace:
      race_table[racy % 8] = 1;
      return race_table[7];
    case Flow::kChild:
      break;
  }
  return 0;
}

extern "C" void GuestLooksAtResults(uint64_t argument) {
  for (auto& stack : race_stacks) {
    test::GuestSpawn(RaceBeside, 60, stack + sizeof(stack) - 64);
  }
  if (static_cast<Flow>(argument) == Flow::kChild) {
    SpawnWithRegister(racy, child_stack + sizeof(child_stack) - 64);
  }
  for (int i = 0; i < 10; ++i) {
    const auto result =
        static_cast<uint64_t>(test::GuestSyscall(kYield, 0, 0, 0));
    if (result + Through(static_cast<Flow>(argument)) >= 1000) {
      large_sums = large_sums + 1;
    }
  }
  while (race_finished.load() != kWorkers) {
    test::GuestSyscall(kYield, 0, 0, 0);
  }
  test::GuestSyscall(kExitGroup, 0, 0, 0);
}

// The result of a call of sched_yield makes the branch behind it go the other
// way: the first thread's sixth call, or the only one of the last thread.
GuestRecording RecordFalseResult(Flow flow, uint64_t seed) {
  GuestRecording guest = RecordCase(
      {"looks at results", GuestLooksAtResults, static_cast<uint64_t>(flow)},
      seed);
  const bool of_child = flow == Flow::kChild;
  auto& records =
      of_child ? guest.inputs().rbegin()->second : guest.inputs().at(Tid(100));
  int calls = 0;
  for (InputRecord& record : records) {
    auto* const call = std::get_if<SyscallInput>(&record);
    if (call != nullptr && call->number == kYield &&
        ++calls == (of_child ? 1 : 6)) {
      call->result = 5000;
    }
  }
  EXPECT_TRUE(of_child ? calls == 1 : calls >= 10) << calls;
  return guest;
}

struct Judged {
  bool contradicts = false;
  bool in_every_order = false;
};

Judged Judge(const follower::Recording& recording) {
  const auto session = follower::OpenedRecording::Open(recording).value();
  GuessRunner runner(recording.failure, nullptr, {}, nullptr);
  const RunOutcome outcome =
      runner.Run(FirstPoint(session->start(), recording.clock_slack_ticks, {}))
          .value();
  if (outcome.end != RunOutcome::End::kContradiction) {
    return {};
  }
  return {.contradicts = true,
          .in_every_order = ComesInEveryOrder(recording, session->start(),
                                              outcome.contradiction, kNoLimit,
                                              Deadline(kLimitS))
                                .value()};
}

TEST(IndependenceTest, OfWhatHappenedNothingComesInEveryOrder) {
  constexpr GuestCase kCases[] = {
      {"racy index", test::GuestRacyIndex, 60},
      {"pushes", test::GuestPushes, 30},
      {"polling", test::GuestPolling, 5},
      {"results", test::GuestLeavesResults, 20},
      {"order violation", test::GuestOrderViolation, 10},
      {"spin lock", test::GuestSpinLockCounter, 20},
      {"mutex", test::GuestMutexCounter, 20},
      {"lost update", test::GuestLostUpdate, 40},
  };
  uint64_t contradictions = 0;
  for (const GuestCase& guest_case : kCases) {
    for (uint64_t seed = 1; seed <= 24; ++seed) {
      SCOPED_TRACE(fmt::format("{}, seed {}", guest_case.name, seed));
      const GuestRecording guest = RecordCase(guest_case, seed);
      const Judged judged = Judge(guest.recording());
      contradictions += judged.contradicts ? 1 : 0;
      EXPECT_FALSE(judged.in_every_order);
    }
  }
  EXPECT_GT(contradictions, 20u);
}

TEST(IndependenceTest, WhatNothingContestedStandsBehindComesInEveryOrder) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const Judged judged =
        Judge(RecordFalseResult(Flow::kNone, seed).recording());
    EXPECT_TRUE(judged.contradicts);
    EXPECT_TRUE(judged.in_every_order);
  }
}

TEST(IndependenceTest, WhatAContestedValueReachesMayComeInOneOrderOnly) {
  for (const Flow flow :
       {Flow::kAdded, Flow::kStored, Flow::kIndex, Flow::kFlag, Flow::kVector,
        Flow::kPlace, Flow::kChild}) {
    for (uint64_t seed = 1; seed <= 12; ++seed) {
      SCOPED_TRACE(
          fmt::format("flow {}, seed {}", static_cast<int>(flow), seed));
      const Judged judged = Judge(RecordFalseResult(flow, seed).recording());
      EXPECT_TRUE(judged.contradicts);
      EXPECT_FALSE(judged.in_every_order);
    }
  }
}

TEST(IndependenceTest, AnInputThatTheLogLacksForbidsIt) {
  const GuestRecording guest = RecordFalseResult(Flow::kNone, 1);
  follower::Recording recording = guest.recording();
  recording.unlogged_inputs = {"/tmp/db is mapped shared"};
  EXPECT_FALSE(Judge(recording).in_every_order);
}

// Without a search of the whole recording.
TEST(IndependenceTest, ItIsTheModelThatDiffers) {
  const GuestRecording guest = RecordFalseResult(Flow::kNone, 3);
  SolveOptions options;
  options.time_limit_s = kLimitS;
  const SolveReport report = Solve(guest.recording(), options, nullptr).value();
  EXPECT_EQ(report.verdict, Verdict::kUnsat);
  EXPECT_TRUE(report.in_every_order);
  EXPECT_EQ(report.whole.rounds, 0u);
  ASSERT_TRUE(report.difference);
  EXPECT_EQ(report.difference->at.tid, Tid(100));
  EXPECT_EQ(report.difference->last_call, kYield);
}

}  // namespace
}  // namespace clew::solver
