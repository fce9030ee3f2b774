// Goal: the follower takes a recorded system call for the machine's only if
// every argument that means something agrees, and whatever the others are.
// Method: a guest recording followed along its true schedule, with one bit of
// one recorded argument flipped: every argument, lowest and highest bit.
#include <asm/unistd_64.h>
#include <gtest/gtest.h>

#include "common/linux/argument_bits.h"
#include "follower/recording.h"
#include "tests/support/guest_programs.h"
#include "tests/support/guest_recorder.h"

namespace clew::follower {
namespace {

using clew::test::GuestRecording;

// What the follower objects to along the true schedule; empty: nothing.
std::string Follow(const GuestRecording& guest) {
  auto session = OpenedRecording::Open(guest.recording());
  EXPECT_TRUE(session) << session.error().message;
  Process process = (*session)->start();
  for (const ScheduleStep& step : guest.truth().schedule) {
    const auto thread = process.tape().IndexOf(step.thread);
    const auto advance = process.Run(*thread, step.until_insn);
    EXPECT_TRUE(advance) << advance.error().message;
    if (!advance || advance->stop == Advance::Stop::kContradiction) {
      return process.contradiction().text;
    }
  }
  return "";
}

TEST(ArgumentCheckTest, EveryBitThatCountsIsComparedAndNoOther) {
  auto guest = GuestRecording::Make(test::GuestMutexCounter, 2, {.seed = 5});
  ASSERT_EQ(Follow(guest), "");
  std::map<uint64_t, int> flips;  // by call
  for (auto& [tid, records] : guest.inputs()) {
    for (InputRecord& record : records) {
      auto& call = std::get<SyscallInput>(record);
      if (++flips[call.number] > 2) {
        continue;
      }
      const ArgumentBits bits = BitsOfArguments(call.number, call.args);
      for (size_t i = 0; i < bits.size(); ++i) {
        for (const unsigned bit : {0u, 31u, 63u}) {
          // Other operations of the call have other arguments.
          const bool selects = call.number == __NR_futex && i == 1;
          if (selects || (call.number == __NR_clone && i == 0)) {
            continue;
          }
          call.args[i] ^= uint64_t{1} << bit;
          EXPECT_EQ(Follow(guest).starts_with("argument"), bit < bits[i])
              << "call " << call.number << " argument " << i << " bit " << bit;
          call.args[i] ^= uint64_t{1} << bit;
        }
      }
    }
  }
  EXPECT_TRUE(flips.contains(__NR_futex) && flips.contains(__NR_clone) &&
              flips.contains(__NR_exit_group));
}

}  // namespace
}  // namespace clew::follower
