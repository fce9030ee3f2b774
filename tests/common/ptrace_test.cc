// Goal: a process that one attaches to is stopped with all of its threads, its
// registers and signal masks can be read, and it goes on afterwards as if
// nothing had been. Method: a child with threads that wait, spin, and are made
// and end all the time; attached to again and again.

#include "common/os/ptrace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "common/os/child_process.h"
#include "common/os/fd.h"
#include "common/os/process_state.h"

namespace clew {
namespace {

constexpr int kTimes = 30;
constexpr uint64_t kBlocked = uint64_t{1} << (SIGUSR2 - 1);
constexpr size_t kXsaveLegacyBytes = 512;
volatile uint64_t g_spins;

void* Spin(void*) {
  for (;;) {
    g_spins = g_spins + 1;
  }
}

void* MakeThreads(void*) {
  for (;;) {
    pthread_t thread;
    if (pthread_create(
            &thread, nullptr, [](void* given) { return given; }, nullptr) ==
        0) {
      pthread_join(thread, nullptr);
    }
  }
}

// Answers each byte of `from` in `to`.
[[noreturn]] void Echo(int from, int to) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
  pthread_t thread;
  pthread_create(&thread, nullptr, Spin, nullptr);
  pthread_create(&thread, nullptr, MakeThreads, nullptr);
  char byte;
  while (read(from, &byte, 1) == 1 && write(to, &byte, 1) == 1) {
  }
  _exit(1);
}

class PtraceAttachTest : public testing::Test {
 protected:
  void SetUp() override {
    auto to = MakePipe();
    auto from = MakePipe();
    child_ = fork();
    if (child_ == 0) {
      Echo(to->read_end.get(), from->write_end.get());
    }
    to_ = std::move(to->write_end);
    from_ = std::move(from->read_end);
    ASSERT_EQ(Ask('!'), '!');
  }
  void TearDown() override {
    kill(child_, SIGKILL);
    (void)WaitForChild(child_);
  }
  char Ask(char byte) const {
    char answer = 0;
    return write(to_.get(), &byte, 1) == 1 && read(from_.get(), &answer, 1) == 1
               ? answer
               : '\0';
  }
  char StateOf(Tid thread) const {
    return ProcessState(fmt::format("/proc/{}/task/{}/stat", child_, thread));
  }

  pid_t child_ = 0;
  Fd to_;
  Fd from_;
};

// The kernel does not tell the end of a first thread before that of the others,
// which stay stopped for nobody.
TEST_F(PtraceAttachTest, OneThatIsKilledIsSeenToHaveEnded) {
  auto process = TracedProcess::Attach(child_);
  ASSERT_TRUE(process.has_value()) << process.error().message;
  ASSERT_TRUE(process->Continue(Tid(child_), 0).has_value());
  kill(child_, SIGKILL);
  const auto stop = process->Wait(Tid(child_), true);
  ASSERT_TRUE(stop.has_value()) << stop.error().message;
  EXPECT_EQ(stop->kind, TraceeStop::Kind::kKilled);
  EXPECT_EQ(stop->signal, SIGKILL);
}

TEST_F(PtraceAttachTest, OneThatIsKilledMeanwhileIsSeenToHaveEnded) {
  auto process = TracedProcess::Attach(child_);
  ASSERT_TRUE(process.has_value()) << process.error().message;
  ASSERT_TRUE(process->Continue(Tid(child_), 0).has_value());
  std::thread killer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    kill(child_, SIGKILL);
  });
  const auto stop = process->Wait(Tid(child_), true);
  killer.join();
  ASSERT_TRUE(stop.has_value()) << stop.error().message;
  EXPECT_EQ(stop->kind, TraceeStop::Kind::kKilled);
}

TEST_F(PtraceAttachTest, AllThreadsStopAndGoOn) {
  for (int i = 0; i < kTimes; ++i) {
    {
      const auto process = TracedProcess::Attach(child_);
      ASSERT_TRUE(process.has_value()) << process.error().message;
      EXPECT_TRUE(process->is_attached());
      EXPECT_EQ(process->first_thread(), Tid(child_));
      const std::vector<Tid> threads = process->Threads();
      EXPECT_GE(threads.size(), 3u);
      EXPECT_THAT(threads, testing::Contains(Tid(child_)));
      for (const Tid thread : threads) {
        EXPECT_EQ(StateOf(thread), 't');
      }
    }
    EXPECT_EQ(Ask(static_cast<char>('a' + i % 26)), 'a' + i % 26);
    EXPECT_NE(StateOf(Tid(child_)), 't');
  }
}

TEST_F(PtraceAttachTest, WhatAThreadHasCanBeReadAndSet) {
  auto process = TracedProcess::Attach(child_);
  ASSERT_TRUE(process.has_value()) << process.error().message;
  const Tid first = process->first_thread();
  EXPECT_EQ(process->SignalMask(first).value_or(0), kBlocked);
  ASSERT_TRUE(process->SetSignalMask(first, UINT64_MAX));
  constexpr uint64_t kNobodyBlocks =
      uint64_t{1} << (SIGKILL - 1) | uint64_t{1} << (SIGSTOP - 1);
  EXPECT_EQ(process->SignalMask(first).value_or(0), ~kNobodyBlocks);
  ASSERT_TRUE(process->SetSignalMask(first, kBlocked));
  const auto extended = process->ExtendedState(first);
  ASSERT_TRUE(extended.has_value()) << extended.error().message;
  EXPECT_GT(extended->size(), kXsaveLegacyBytes);
  const auto rseq = process->RegisteredRseq(first);
  ASSERT_TRUE(rseq.has_value()) << rseq.error().message;
}

// A step that ends while its thread is told to stop leaves no trap behind: it
// would end the process.
TEST_F(PtraceAttachTest, ThreadsThatWereSteppedGoOnToo) {
  for (int i = 0; i < kTimes; ++i) {
    auto process = TracedProcess::Attach(child_);
    ASSERT_TRUE(process.has_value()) << process.error().message;
    for (const Tid thread : process->Threads()) {
      ASSERT_TRUE(process->SingleStep(thread, 0));
      const auto stop = process->Interrupt(thread);
      ASSERT_TRUE(stop.has_value()) << stop.error().message;
      if (stop->kind != TraceeStop::Kind::kExited) {
        ASSERT_TRUE(process->Detach(thread, stop->signal));
      }
    }
    EXPECT_EQ(Ask('s'), 's');
  }
}

TEST_F(PtraceAttachTest, WhatCannotBeAttachedToIsNamed) {
  kill(child_, SIGSTOP);
  while (StateOf(Tid(child_)) != 'T') {
  }
  for (const auto& [process, told] :
       {std::pair{child_, "it is stopped"},
        std::pair{INT32_MAX, "there is no such process"}}) {
    const auto attached = TracedProcess::Attach(process);
    ASSERT_FALSE(attached.has_value());
    EXPECT_EQ(attached.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(attached.error().message, testing::HasSubstr(told));
  }
}

}  // namespace
}  // namespace clew
