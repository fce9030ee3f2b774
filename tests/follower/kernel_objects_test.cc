// Goal: a wait ends when another thread has acted, and a mark takes back
// everything that threads did to one another's waits.
// Method: each kind of wait by hand: before, after, and after a return to the
// mark, where digests are compared, too.
#include "follower/kernel/kernel_objects.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <csignal>

#include "tests/follower/scripted.h"

namespace clew::follower {
namespace {

constexpr Tid kFirst(100);
constexpr Tid kOther(101);
constexpr uint64_t kSleepWord = 0x1000;

class KernelObjectsTest : public testing::Test {
 protected:
  Wait Run(const SyscallInput& call) {
    const Wait wait = kernel_.Enter(call, memory_);
    kernel_.Leave(call);
    return wait;
  }
  KernelObjects kernel_{kFirst};
  machine::Memory memory_;
};

TEST_F(KernelObjectsTest, ASleeperNeedsAWake) {
  const Wait wait = kernel_.Sleep(kSleepWord, true, FutexTable::Match::kAny);
  EXPECT_TRUE(wait.needs_wake);
  EXPECT_EQ(wait.addr, kSleepWord);
  EXPECT_FALSE(kernel_.MayReturn(wait));
  const uint64_t asleep = kernel_.Digest();
  const auto mark = kernel_.SetMark();
  EXPECT_TRUE(kernel_.ChangeFutexes().Wake(kSleepWord, 1, 1));
  EXPECT_FALSE(
      kernel_.ChangeFutexes().Wake(kSleepWord, 1, 1));  // nobody is left
  EXPECT_TRUE(kernel_.MayReturn(wait));
  kernel_.EndWait(wait);
  EXPECT_NE(kernel_.Digest(), asleep);
  kernel_.RollBack(mark);
  EXPECT_EQ(kernel_.Digest(), asleep);
  EXPECT_FALSE(kernel_.MayReturn(wait));
}

TEST_F(KernelObjectsTest, AReaderNeedsWhatIsPutIntoTheChannel) {
  const uint64_t counter = 7;
  Run(Call(SYS_eventfd2, {0, 0}, static_cast<int64_t>(counter)));
  const SyscallInput taken = Call(SYS_read, {counter, kSleepWord, 8}, 8);
  SyscallInput read = taken;
  const uint64_t value = 3;
  const auto bytes = std::as_bytes(std::span(&value, 1));
  read.writes.push_back(
      {.addr = TraceeAddr(kSleepWord), .bytes = {bytes.begin(), bytes.end()}});
  const Wait wait = kernel_.Enter(read, memory_);
  EXPECT_TRUE(wait.needs_wake);
  EXPECT_GE(wait.addr, uint64_t{1} << 63);
  EXPECT_FALSE(kernel_.MayReturn(wait));
  memory_.Map(kSleepWord, 4096, kProtRead | kProtWrite);
  memory_.Poke(kSleepWord, bytes);
  const auto mark = kernel_.SetMark();
  EXPECT_FALSE(Run(Call(SYS_write, {counter, kSleepWord, 8}, 8)).needs_wake);
  EXPECT_TRUE(kernel_.MayReturn(wait));
  kernel_.EndWait(wait);
  EXPECT_FALSE(kernel_.MayReturn(wait));
  kernel_.RollBack(mark);
  EXPECT_FALSE(kernel_.MayReturn(wait));
}

TEST_F(KernelObjectsTest, AHandlerNeedsTheCallsThatSendItsSignals) {
  const std::vector<SentSignals::Signal> twice(
      2, {.number = SIGUSR1, .sent_to = SentTo::kThread});
  EXPECT_TRUE(kernel_.MayHandle(kOther, {}));
  EXPECT_FALSE(kernel_.MayHandle(kOther, twice));
  const SyscallInput send = Call(SYS_tgkill, {100, 101, SIGUSR1}, 0);
  Run(send);
  EXPECT_FALSE(kernel_.MayHandle(kOther, twice));
  EXPECT_TRUE(kernel_.MayHandle(kOther, std::span(twice).first(1)));
  const auto mark = kernel_.SetMark();
  Run(send);
  EXPECT_TRUE(kernel_.MayHandle(kOther, twice));
  kernel_.Handle(kOther, twice[0]);
  EXPECT_FALSE(kernel_.MayHandle(kOther, twice));
  kernel_.RollBack(mark);
  EXPECT_FALSE(kernel_.MayHandle(kOther, twice));
  EXPECT_TRUE(kernel_.MayHandle(kOther, std::span(twice).first(1)));
}

TEST_F(KernelObjectsTest, OtherCallsWaitForNobody) {
  const Wait wait = Run(Call(SYS_getpid, {}, 100));
  EXPECT_FALSE(wait.needs_wake);
  EXPECT_EQ(wait.addr, 0u);
  EXPECT_TRUE(kernel_.MayReturn(wait));
  kernel_.EndWait(wait);
}

}  // namespace
}  // namespace clew::follower
