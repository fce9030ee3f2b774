// Goal: a futex wait that was recorded to be refused long after it was entered
// returns when its word has had another value, and not before. Method:
// property; guest recordings in which sleepers are woken by nobody run along
// their true schedule, an instruction at a time. Oracle: the word after each
// instruction, and the true end.
#include <gtest/gtest.h>

#include <map>
#include <span>

#include "follower/recording.h"
#include "tests/support/guest_programs.h"
#include "tests/support/guest_recorder.h"

namespace clew::follower {
namespace {

using clew::test::GuestRecording;

bool IsAnother(const Process& process, const Wait::Refusal& refusal) {
  uint32_t word = 0;
  EXPECT_TRUE(process.memory().Peek(
      refusal.addr, std::as_writable_bytes(std::span(&word, 1))));
  return word != refusal.value;
}

class RefusedWaitTest : public testing::Test {
 protected:
  // Looks at the words of all who wait, and whether these may go on.
  void Look(const Process& process) {
    for (size_t thread = 0; thread < process.thread_count(); ++thread) {
      const auto& refusal = process.thread(thread).wait.refusal;
      if (!refusal) {
        has_differed_.erase(thread);
        continue;
      }
      bool& differed = has_differed_[thread];
      waited_ += differed ? 0 : 1;
      differed = differed || IsAnother(process, *refusal);
      const auto may_go_on = process.CanRun(thread);
      ASSERT_TRUE(may_go_on) << may_go_on.error().message;
      ASSERT_EQ(*may_go_on, differed)
          << "thread " << process.tid(thread).as_int();
      changed_back_ += differed && !IsAnother(process, *refusal) ? 1 : 0;
    }
  }

  std::map<size_t, bool> has_differed_;  // by thread that waits
  uint64_t waited_ = 0;                  // looks at a wait not to be ended yet
  uint64_t changed_back_ = 0;  // looks at one whose word is the old again
};

TEST_F(RefusedWaitTest, ReturnsOnceItsWordWasAnother) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const GuestRecording guest = GuestRecording::Make(
        test::GuestMutexCounter, 10, {.seed = seed, .interrupt_one_in = 2});
    auto opened = OpenedRecording::Open(guest.recording());
    ASSERT_TRUE(opened) << opened.error().message;
    Process process = (*opened)->start();
    process.mutable_memory().EnableDigest();
    has_differed_.clear();
    for (const ScheduleStep& step : guest.truth().schedule) {
      const size_t thread = process.tape().IndexOf(step.thread).value();
      while (process.thread(thread).retired < step.until_insn) {
        const auto advance =
            process.Run(thread, process.thread(thread).retired + 1);
        ASSERT_TRUE(advance) << advance.error().message;
        ASSERT_EQ(advance->stop, Advance::Stop::kReached)
            << process.contradiction().text;
        ASSERT_NO_FATAL_FAILURE(Look(process));
      }
    }
    EXPECT_EQ(process.memory().digest(), guest.truth().memory_digest);
  }
  EXPECT_GT(waited_, 1000u);
  EXPECT_GT(changed_back_, 100u);
}

}  // namespace
}  // namespace clew::follower
