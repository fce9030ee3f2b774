// Goal: a handler is entered only after as many calls that sent the signal as
// handlers before it, by the same way to the same thread; what came from
// elsewhere is never refused.
// Method: calls as the log has them, each way to send with each way to handle.
#include "common/sent_signals.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <csignal>

namespace clew {
namespace {

constexpr Tid kFirst(100);  // and the process
constexpr Tid kOther(101);

class SentSignalsTest : public testing::Test {
 protected:
  bool Handle(Tid thread, int32_t signal, SentTo sent_to) {
    const SentSignals::Signal handled = {.number = signal, .sent_to = sent_to};
    const bool may = books_.MayHandle(thread, handled);
    if (may) {
      books_.Handle(thread, handled);
    }
    return may;
  }
  void Send(uint64_t number, const std::array<uint64_t, 6>& args) {
    EXPECT_TRUE(SentSignals::Concerns(number));
    books_.Enter(number, args);
  }
  SentSignals books_{kFirst};
};

TEST_F(SentSignalsTest, EachCallOfAThreadIsOneSignal) {
  EXPECT_FALSE(Handle(kOther, SIGUSR1, SentTo::kThread));
  Send(SYS_tgkill, {100, 101, SIGUSR1});
  EXPECT_FALSE(Handle(kFirst, SIGUSR1, SentTo::kThread));
  EXPECT_FALSE(Handle(kOther, SIGUSR2, SentTo::kThread));
  EXPECT_FALSE(Handle(kOther, SIGUSR1, SentTo::kProcess));
  EXPECT_TRUE(Handle(kOther, SIGUSR1, SentTo::kThread));
  EXPECT_FALSE(Handle(kOther, SIGUSR1, SentTo::kThread));
  Send(SYS_tkill, {101, SIGUSR1});
  Send(SYS_rt_tgsigqueueinfo, {100, 101, SIGUSR1});
  EXPECT_TRUE(Handle(kOther, SIGUSR1, SentTo::kThread));
  EXPECT_TRUE(Handle(kOther, SIGUSR1, SentTo::kThread));
  EXPECT_FALSE(Handle(kOther, SIGUSR1, SentTo::kThread));
}

TEST_F(SentSignalsTest, OneOfTheProcessMayBeHandledByAnyThread) {
  Send(SYS_kill, {99, SIGUSR1});
  EXPECT_FALSE(Handle(kOther, SIGUSR1, SentTo::kProcess));
  Send(SYS_kill, {100, SIGUSR1});
  EXPECT_FALSE(Handle(kOther, SIGUSR1, SentTo::kThread));
  EXPECT_TRUE(Handle(kOther, SIGUSR1, SentTo::kProcess));
  EXPECT_FALSE(Handle(kOther, SIGUSR1, SentTo::kProcess));
  EXPECT_TRUE(Handle(kFirst, SIGUSR1, SentTo::kProcess));
  Send(SYS_rt_sigqueueinfo, {100, SIGUSR1});
  EXPECT_TRUE(Handle(kOther, SIGUSR1, SentTo::kProcess));
  for (const uint64_t group : {uint64_t{0}, UINT64_MAX, uint64_t{0} - 50}) {
    EXPECT_FALSE(Handle(kOther, SIGUSR1, SentTo::kProcess));
    Send(SYS_kill, {group, SIGUSR1});
    EXPECT_TRUE(Handle(kOther, SIGUSR1, SentTo::kProcess));
  }
  EXPECT_FALSE(Handle(kOther, SIGUSR1, SentTo::kProcess));
  Send(SYS_pidfd_send_signal, {99, SIGUSR1});  // a descriptor
  EXPECT_TRUE(Handle(kOther, SIGUSR1, SentTo::kProcess));
}

TEST_F(SentSignalsTest, OthersAreNotConstrained) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(Handle(kOther, SIGUSR1, SentTo::kUnknown));
  }
  EXPECT_FALSE(SentSignals::Concerns(SYS_write));
  EXPECT_FALSE(SentSignals::Concerns(SYS_rt_sigaction));
}

}  // namespace
}  // namespace clew
