// Goal: a recording of one thread is solved by following it once, whatever the
// time limit and its length; the tape holds a stretch of it; where the thread
// contradicts, the place is told.
// Method: golden, a guest program of one thread whose streams count how often
// they are pulled. Oracle: the guest recorder's truth.
#include <asm/unistd_64.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "constraints/verdict.h"
#include "follower/run_schedule.h"
#include "solver/check.h"
#include "solver/solve.h"
#include "tests/support/guest_cases.h"

namespace clew::solver {
namespace {

using constraints::Verdict;
using test::GuestRecording;
using test::RecordCase;

// Odd seeds: a block for each instruction.
constexpr uint64_t kSeed = 1;
constexpr uint64_t kRounds = 60'000;

volatile uint64_t sum;
extern "C" void GuestAlone(uint64_t rounds) {
  for (uint64_t i = 0; i < rounds; ++i) {
    sum = sum + i;
  }
  test::GuestSyscall(__NR_exit_group, 0, 0, 0);
}

GuestRecording Record() {
  return RecordCase({"alone", GuestAlone, kRounds}, kSeed);
}

class CountingStreams final : public StreamSource {
 public:
  CountingStreams(std::unique_ptr<StreamSource> streams, uint64_t& pulled)
      : streams_(std::move(streams)), pulled_(pulled) {}
  const std::vector<Tid>& threads() const override {
    return streams_->threads();
  }
  const std::vector<Slice>& slices() const override {
    return streams_->slices();
  }
  Result<std::optional<StreamItem>> Next(Tid thread) override {
    ++pulled_;
    return streams_->Next(thread);
  }
  TscTicks NotBefore(Tid thread) override {
    return streams_->NotBefore(thread);
  }

 private:
  std::unique_ptr<StreamSource> streams_;
  uint64_t& pulled_;
};

class Progress final : public ProgressSink {
 public:
  void Update(uint64_t done, uint64_t /*total*/) override {
    EXPECT_GT(done, last);
    last = done;
  }
  uint64_t last = 0;
};

TEST(OneThreadTest, ItIsFollowedOnceWhateverTheTimeLimit) {
  const GuestRecording guest = Record();
  follower::Recording recording = guest.recording();
  uint64_t pulled = 0;
  recording.open_streams = [&]() -> Result<std::unique_ptr<StreamSource>> {
    CLEW_ASSIGN_OR_RETURN(streams, guest.recording().open_streams());
    return std::make_unique<CountingStreams>(std::move(streams), pulled);
  };
  SolveOptions options;
  options.time_limit_s = 0;
  Progress progress;
  const auto report = Solve(recording, options, &progress);
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_EQ(report->verdict, Verdict::kWitness) << report->reason;
  EXPECT_EQ(report->schedule.final_memory_digest, guest.truth().memory_digest);
  EXPECT_EQ(report->insns, guest.truth().insns);
  const std::vector<ScheduleStep> only = {
      {.thread = Tid(100), .until_insn = guest.truth().insns}};
  EXPECT_EQ(report->schedule.steps, only);
  // Each block once, and the end at most twice.
  EXPECT_GE(pulled, guest.truth().insns);
  EXPECT_LE(pulled, guest.truth().insns + 2);
  EXPECT_GT(progress.last, guest.truth().insns / 2);
}

TEST(OneThreadTest, TheTapeHoldsAStretchOfALongStep) {
  const GuestRecording guest = Record();
  const uint64_t items_max = guest.truth().insns / 2;
  const auto session =
      follower::OpenedRecording::Open(guest.recording(), {items_max});
  ASSERT_TRUE(session) << session.error().message;
  follower::Process process = (*session)->start();
  const auto wrong = follower::RunSchedule(
      process, {{.thread = Tid(100), .until_insn = follower::kToItsEnd}});
  ASSERT_TRUE(wrong) << wrong.error().message;
  EXPECT_EQ(wrong->value_or(""), "");
  EXPECT_EQ(process.retired_total(), guest.truth().insns);
}

TEST(OneThreadTest, WhereItContradictsIsToldWhateverTheTimeLimit) {
  GuestRecording guest = Record();
  test::FalsifyPath(guest);
  SolveOptions options;
  options.time_limit_s = 0;
  const auto report = Solve(guest.recording(), options, nullptr);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->verdict, Verdict::kUnsat);
  EXPECT_EQ(report->windows.furthest_insns, guest.truth().insns / 2);
}

}  // namespace
}  // namespace clew::solver
