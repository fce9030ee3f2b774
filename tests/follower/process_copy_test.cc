// Goal: a copy of a process is a checkpoint: it goes on as the original would
// have, is not changed by it, and has no undo log of its own. Its digest is
// that of every register. Method: property; guest recordings run along their
// true schedule, copied at random places. Oracle: the state digests and the
// truth's memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <type_traits>

#include "common/digest.h"
#include "follower/recording.h"
#include "tests/support/guest_programs.h"
#include "tests/support/guest_recorder.h"

namespace clew::follower {
namespace {

using clew::test::GuestRecorderOptions;
using clew::test::GuestRecording;

// Runs the schedule's steps [begin, end); digests after each, if wanted.
void RunSteps(Process& process, const std::vector<ScheduleStep>& steps,
              size_t begin, size_t end,
              std::vector<uint64_t>* digests = nullptr) {
  for (size_t i = begin; i < end; ++i) {
    const auto thread = process.tape().IndexOf(steps[i].thread);
    ASSERT_TRUE(thread);
    const auto advance = process.Run(*thread, steps[i].until_insn);
    ASSERT_TRUE(advance) << advance.error().message;
    ASSERT_NE(advance->stop, Advance::Stop::kContradiction)
        << process.contradiction().text;
    if (digests != nullptr) {
      digests->push_back(process.StateDigest());
    }
  }
}

class ProcessCopyTest : public testing::Test {
 protected:
  void Open(uint64_t seed) {
    GuestRecorderOptions options;
    options.seed = seed;
    options.merge_blocks = seed % 2 == 0;
    guest_ = GuestRecording::Make(test::GuestMutexCounter, 8, options);
    auto session = OpenedRecording::Open(guest_->recording());
    ASSERT_TRUE(session) << session.error().message;
    session_ = std::move(*session);
  }
  const std::vector<ScheduleStep>& steps() const {
    return guest_->truth().schedule;
  }
  Process Start() const {
    Process process = session_->start();
    process.mutable_memory().EnableDigest();
    return process;
  }

  std::optional<GuestRecording> guest_;
  std::unique_ptr<OpenedRecording> session_;
};

TEST_F(ProcessCopyTest, ACopyGoesOnAsTheOriginalDidAndIsLeftAloneByIt) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Open(seed);
    Random random(seed);
    Process process = Start();
    process.SetMark();
    const size_t at = random.Below(steps().size());
    RunSteps(process, steps(), 0, at);
    Process copy = process;
    const uint64_t at_copy = process.StateDigest();
    std::vector<uint64_t> of_original;
    RunSteps(process, steps(), at, steps().size(), &of_original);
    EXPECT_EQ(copy.StateDigest(), at_copy);
    std::vector<uint64_t> of_copy;
    RunSteps(copy, steps(), at, steps().size(), &of_copy);
    EXPECT_EQ(of_copy, of_original);
    EXPECT_EQ(copy.memory().digest(), guest_->truth().memory_digest);
    EXPECT_EQ(copy.retired_total(), guest_->truth().insns);
  }
}

TEST_F(ProcessCopyTest, ACopyHasNoMarksAndTheOriginalKeepsItsOwn) {
  Open(3);
  Process process = Start();
  const size_t half = steps().size() / 2;
  RunSteps(process, steps(), 0, half / 2);
  const uint64_t before = process.StateDigest();
  const Process::Mark mark = process.SetMark();
  RunSteps(process, steps(), half / 2, half);
  Process copy = process;
  EXPECT_DEATH(copy.RollBack(mark), "mark 0 of 0");
  // Its own first mark is mark 0 again, and goes back to the copying at most.
  const uint64_t at_copy = copy.StateDigest();
  EXPECT_EQ(copy.SetMark(), 0u);
  RunSteps(copy, steps(), half, steps().size());
  copy.RollBack(0);
  EXPECT_EQ(copy.StateDigest(), at_copy);
  process.RollBack(mark);
  EXPECT_EQ(process.StateDigest(), before);
}

TEST_F(ProcessCopyTest, AnAssignmentDropsTheMarks) {
  Open(4);
  Process process = Start();
  const Process start = process;
  process.SetMark();
  RunSteps(process, steps(), 0, steps().size() / 2);
  process = start;
  EXPECT_EQ(process.StateDigest(), start.StateDigest());
  EXPECT_DEATH(process.RollBack(0), "mark 0 of 0");
  RunSteps(process, steps(), 0, steps().size());
  EXPECT_EQ(process.memory().digest(), guest_->truth().memory_digest);
}

// Two states that differ in one register only are two: what is refuted of one
// is not of the other. The structured bindings name every field there is.
TEST_F(ProcessCopyTest, EveryRegisterCountsInTheDigest) {
  Open(5);
  Process process = Start();
  const uint64_t digest = process.StateDigest();
  machine::Registers registers = process.thread(0).registers;
  const auto expect_counts = [&](const char* name, auto& field) {
    const auto before = field;
    field = static_cast<std::remove_reference_t<decltype(field)>>(field ^ 1);
    process.mutable_registers(0) = registers;
    EXPECT_NE(process.StateDigest(), digest) << name;
    field = before;
    process.mutable_registers(0) = registers;
    EXPECT_EQ(process.StateDigest(), digest) << name;
  };
  auto& [gpr, rip, rflags, fs_base, gs_base, vec, opmask, mxcsr, mxcsr_mask,
         avx_in_use, opmask_in_use, zmm_in_use, high_zmm_in_use, x87] =
      registers;
  for (uint64_t& general : gpr) {
    expect_counts("gpr", general);
  }
  expect_counts("rip", rip);
  expect_counts("rflags", rflags);
  expect_counts("fs_base", fs_base);
  expect_counts("gs_base", gs_base);
  for (machine::VecLane& lane : vec) {
    for (machine::Vec128& vector : lane) {
      expect_counts("vec", vector.q[0]);
      expect_counts("vec", vector.q[1]);
    }
  }
  for (uint64_t& mask : opmask) {
    expect_counts("opmask", mask);
  }
  expect_counts("avx_in_use", avx_in_use);
  expect_counts("opmask_in_use", opmask_in_use);
  expect_counts("zmm_in_use", zmm_in_use);
  expect_counts("high_zmm_in_use", high_zmm_in_use);
  expect_counts("mxcsr", mxcsr);
  expect_counts("mxcsr_mask", mxcsr_mask);
  auto& [stack, control, status, tag, in_use] = x87;
  for (machine::Float80& value : stack) {
    expect_counts("x87", value.significand);
    expect_counts("x87", value.sign_exponent);
  }
  expect_counts("x87 control", control);
  expect_counts("x87 status", status);
  expect_counts("x87 tag", tag);
  expect_counts("x87 in_use", in_use);
}

TEST_F(ProcessCopyTest, AThreadThatBeginsTwiceIsRefused) {
  Open(6);
  Recording recording = guest_->recording();
  recording.start.others.push_back(recording.start.first);
  const auto session = OpenedRecording::Open(recording);
  ASSERT_FALSE(session.has_value());
  EXPECT_EQ(session.error().code, ErrorCode::kCorruptInput);
  EXPECT_THAT(session.error().message,
              testing::HasSubstr("is there twice, wanted once each"));
}

}  // namespace
}  // namespace clew::follower
