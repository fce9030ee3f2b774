// Goal: a killed child counts as left behind while the kernel cannot end it,
// not because it has had no CPU since, and it is reaped when it has ended.
// Method: children that live until the test lets them go, in place of killed
// ones that a busy host lets wait: one sleeps, one waits for a child of its own
// as vfork(2) does, in state D.
#include "daemon/source/killed_children.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

#include "common/os/child_process.h"
#include "tests/support/thread_state.h"
#include "tests/support/wait_until.h"

namespace clew::daemon {
namespace {

using clew::test::ThreadState;
using clew::test::WaitUntil;

constexpr uid_t kUserOfChild = 1000;
constexpr uid_t kUserWithoutChild = 1001;

class KilledChildrenTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = MakePipe();
    ASSERT_TRUE(made) << made.error().message;
    pipe_ = std::move(*made);
  }
  // In state S, or in D.
  pid_t StartChild(bool in_d) const {
    const pid_t child = fork();
    if (child == 0) {
      close(pipe_.write_end.get());
      char byte = 0;
      if (!in_d || syscall(SYS_clone, CLONE_VFORK | SIGCHLD, nullptr, nullptr,
                           nullptr, nullptr) == 0) {
        (void)!read(pipe_.read_end.get(), &byte, 1);
      }
      _exit(0);
    }
    const char wanted = in_d ? 'D' : 'S';
    EXPECT_TRUE(WaitUntil([&] { return ThreadState(child, child) == wanted; }));
    return child;
  }
  void LetGo() { pipe_.write_end.Close(); }

  size_t LeftBehindOf(uid_t user) {
    return killed_.LeftBehind(
        [&](const KilledChild& child) { return child.user == user; });
  }
  // No zombie either.
  bool IsReaped(pid_t child) {
    (void)LeftBehindOf(kUserOfChild);
    return kill(child, 0) != 0;
  }

  Pipe pipe_;
  KilledChildren killed_;
};

TEST_F(KilledChildrenTest, OneThatCanBeEndedIsNotLeftBehind) {
  const pid_t child = StartChild(false);
  killed_.Add({.process = child, .user = kUserOfChild, .looked_at = 1});
  EXPECT_EQ(LeftBehindOf(kUserOfChild), 0u);
  EXPECT_FALSE(IsReaped(child));
  LetGo();
  EXPECT_TRUE(WaitUntil([&] { return IsReaped(child); }));
}

TEST_F(KilledChildrenTest, OneInAWaitThatNothingEndsIsUntilItEnds) {
  const pid_t child = StartChild(true);
  killed_.Add({.process = child, .user = kUserOfChild, .looked_at = 1});
  EXPECT_EQ(LeftBehindOf(kUserOfChild), 1u);
  EXPECT_EQ(LeftBehindOf(kUserWithoutChild), 0u);
  LetGo();
  EXPECT_TRUE(WaitUntil([&] { return IsReaped(child); }));
  EXPECT_EQ(LeftBehindOf(kUserOfChild), 0u);
}

}  // namespace
}  // namespace clew::daemon
