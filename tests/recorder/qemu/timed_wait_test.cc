// Goal: the clock that the program is shown and the waits that are decided by
// it agree: a wait is over exactly when the clock shows its limit, and what the
// kernel would refuse, or not wait for, is not a wait.
// Method: calls whose arguments lie in this process's own memory, where a
// program's would.
#include "recorder/qemu/calls/timed_wait.h"

#include <gtest/gtest.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <cerrno>
#include <new>

#include "common/check.h"

namespace clew::recorder {
namespace {

constexpr uint64_t kTicks = 12'345;

// A page of memory at an address that a program under QEMU could have.
class LowPage {
 public:
  explicit LowPage(int protection)
      : page_(mmap(nullptr, kPageBytes, protection,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0)) {}
  LowPage(const LowPage&) = delete;
  LowPage& operator=(const LowPage&) = delete;
  ~LowPage() { munmap(page_, kPageBytes); }
  void* get() const { return page_; }

 private:
  void* page_;
};

class TimedWaitTest : public testing::Test {
 protected:
  struct Arguments {
    uint32_t word;
    timespec limit;
  };
  template <class T>
  static uint64_t Addr(T& object) {
    return reinterpret_cast<uint64_t>(&object);
  }
  std::optional<TimedWait> Parse(uint64_t number,
                                 std::array<uint64_t, 6> args) {
    SyscallCall call;
    call.number = number;
    call.args = args;
    return ParseTimedWait(call, memory_, clock_, kTicks);
  }
  std::optional<TimedWait> ParseWait(int operation) {
    return Parse(SYS_futex, {Addr(word_), static_cast<uint64_t>(operation),
                             word_, Addr(limit_), 0, UINT32_MAX});
  }

  // REQUIRES: it is a wait.
  static TimedWait Must(const std::optional<TimedWait>& wait) {
    CLEW_CHECK(wait, "no wait");
    return *wait;
  }
  // REQUIRES: the clock is shown.
  timespec Shown(uint64_t id, uint64_t ticks) const {
    const auto shown = clock_.Show(id, ticks);
    CLEW_CHECK(shown, "clock {} is not shown", id);
    return *shown;
  }

  GuestMemory memory_ = *GuestMemory::Open();
  VirtualClock clock_{{.realtime_s = 5000, .monotonic_s = 70}};
  LowPage page_{PROT_READ | PROT_WRITE};
  Arguments& arguments_ = *new (page_.get()) Arguments{
      .word = 3, .limit = {.tv_sec = 2, .tv_nsec = 7}};
  uint32_t& word_ = arguments_.word;
  timespec& limit_ = arguments_.limit;
  const uint64_t after_ = clock_.Now(kTicks) + 2'000'000'007;
};

TEST_F(TimedWaitTest, TheClockShowsTicksAndWhatWasSkipped) {
  const timespec before = Shown(CLOCK_REALTIME, 0);
  EXPECT_EQ(before.tv_sec, 5000);
  EXPECT_EQ(before.tv_nsec, 0);
  clock_.Skip(3'000'000'001);
  const timespec then = Shown(CLOCK_MONOTONIC, 2);
  EXPECT_EQ(then.tv_sec, 73);
  EXPECT_EQ(then.tv_nsec, 1 + 2 * static_cast<long>(VirtualClock::kNsPerTick));
  EXPECT_FALSE(clock_.Show(CLOCK_PROCESS_CPUTIME_ID, 0));
  EXPECT_FALSE(clock_.Show(CLOCK_THREAD_CPUTIME_ID, 0));
}

// For every clock: what it shows at a moment is shown at that moment.
TEST_F(TimedWaitTest, WhenIsTheInverseOfShow) {
  for (const uint64_t id : std::initializer_list<uint64_t>{
           CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_TAI}) {
    for (const uint64_t ticks : {0u, 1u, 99'999'999u, 123'456'789u}) {
      EXPECT_EQ(clock_.When(id, Shown(id, ticks)), clock_.Now(ticks));
    }
  }
  EXPECT_EQ(clock_.When(CLOCK_REALTIME, {.tv_sec = 4999, .tv_nsec = 0}), 0u);
  EXPECT_EQ(clock_.When(CLOCK_REALTIME, {.tv_sec = INT64_MAX, .tv_nsec = 0}),
            VirtualClock::kNever);
  EXPECT_FALSE(clock_.When(CLOCK_THREAD_CPUTIME_ID, {}));
}

TEST_F(TimedWaitTest, RelativeLimitsCountFromNow) {
  for (const int flags : {0, FUTEX_PRIVATE_FLAG, FUTEX_CLOCK_REALTIME}) {
    const TimedWait wait = Must(ParseWait(FUTEX_WAIT | flags));
    EXPECT_EQ(wait.deadline_ns, after_);
    EXPECT_EQ(wait.timespec_addr, Addr(limit_));
    EXPECT_TRUE(wait.is_futex);
  }
  EXPECT_EQ(Must(Parse(SYS_nanosleep, {Addr(limit_)})).deadline_ns, after_);
  EXPECT_EQ(Must(Parse(SYS_clock_nanosleep, {CLOCK_REALTIME, 0, Addr(limit_)}))
                .deadline_ns,
            after_);
  limit_.tv_sec = INT64_MAX;
  EXPECT_EQ(Must(Parse(SYS_nanosleep, {Addr(limit_)})).deadline_ns,
            VirtualClock::kNever);
}

TEST_F(TimedWaitTest, AbsoluteLimitsCountByTheirClock) {
  limit_ = {.tv_sec = 75, .tv_nsec = 1};
  const TimedWait wait =
      Must(ParseWait(FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG));
  EXPECT_EQ(wait.deadline_ns, 5'000'000'001u);
  limit_ = {.tv_sec = 5005, .tv_nsec = 1};
  EXPECT_EQ(
      Must(ParseWait(FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME)).deadline_ns,
      5'000'000'001u);
  EXPECT_EQ(Must(Parse(SYS_clock_nanosleep,
                       {CLOCK_REALTIME, TIMER_ABSTIME, Addr(limit_)}))
                .deadline_ns,
            5'000'000'001u);
}

TEST_F(TimedWaitTest, WhatDoesNotWaitOrIsRefusedIsNone) {
  EXPECT_FALSE(Parse(SYS_futex, {Addr(word_), FUTEX_WAIT, 3, 0}));
  EXPECT_FALSE(Parse(SYS_futex, {Addr(word_), FUTEX_WAIT, 4, Addr(limit_)}));
  EXPECT_FALSE(Parse(SYS_futex, {8, FUTEX_WAIT, 3, Addr(limit_)}));
  EXPECT_FALSE(ParseWait(FUTEX_WAKE));
  EXPECT_FALSE(ParseWait(FUTEX_LOCK_PI));
  EXPECT_FALSE(Parse(SYS_nanosleep, {8}));
  EXPECT_FALSE(Parse(SYS_poll, {Addr(limit_)}));
  EXPECT_FALSE(
      Parse(SYS_clock_nanosleep, {CLOCK_THREAD_CPUTIME_ID, 0, Addr(limit_)}));
  for (const timespec bad : {timespec{.tv_sec = -1, .tv_nsec = 0},
                             timespec{.tv_sec = 1, .tv_nsec = -1},
                             timespec{.tv_sec = 1, .tv_nsec = 1'000'000'000}}) {
    limit_ = bad;
    EXPECT_FALSE(Parse(SYS_nanosleep, {Addr(limit_)}));
  }
}

TEST_F(TimedWaitTest, AFutexHasChangedOnceItsWordHas) {
  const TimedWait wait = Must(ParseWait(FUTEX_WAIT));
  EXPECT_FALSE(wait.Changed(memory_));
  word_ = 4;
  EXPECT_TRUE(wait.Changed(memory_));
  EXPECT_FALSE(Must(Parse(SYS_nanosleep, {Addr(limit_)})).Changed(memory_));
}

TEST_F(TimedWaitTest, MemoryThatTheProgramCannotWriteIsWritten) {
  const LowPage page(PROT_READ);
  const auto addr = reinterpret_cast<uint64_t>(page.get());
  const uint64_t value = 0x0123456789abcdef;
  if (!memory_.Write(addr, &value, sizeof(value))) {
    GTEST_SKIP() << "this kernel does not allow it";
  }
  EXPECT_EQ(memory_.Load<uint64_t>(addr), value);
  EXPECT_FALSE(memory_.Write(8, &value, sizeof(value)));
  EXPECT_FALSE(memory_.Write(kGuestEnd - 4, &value, sizeof(value)));
}

TEST_F(TimedWaitTest, LimitsThatTheHostKeepsAreKnownByTheProgramsClock) {
  const auto end = [&](uint64_t number, std::array<uint64_t, 6> args) {
    SyscallCall call;
    call.number = number;
    call.args = args;
    return HostLimit(call, memory_, clock_, kTicks);
  };
  const uint64_t now = clock_.Now(kTicks);
  limit_ = {.tv_sec = 2, .tv_nsec = 5};
  EXPECT_EQ(end(SYS_poll, {0, 0, 3}), now + 3'000'000);
  EXPECT_EQ(end(SYS_epoll_wait, {0, 0, 0, 4}), now + 4'000'000);
  EXPECT_EQ(end(SYS_ppoll, {0, 0, Addr(limit_)}), now + 2'000'000'005);
  EXPECT_EQ(end(SYS_pselect6, {0, 0, 0, 0, Addr(limit_)}), now + 2'000'000'005);
  EXPECT_EQ(end(SYS_select, {0, 0, 0, 0, Addr(limit_)}), now + 2'000'005'000)
      << "microseconds";
  EXPECT_FALSE(end(SYS_poll, {0, 0, 0})) << "it does not wait";
  EXPECT_FALSE(end(SYS_poll, {0, 0, UINT64_MAX})) << "for ever";
  EXPECT_FALSE(end(SYS_ppoll, {}));
  EXPECT_FALSE(end(SYS_read, {0, 0, 3}));
  EXPECT_TRUE(EndedByLimit(SYS_poll, 0));
  EXPECT_FALSE(EndedByLimit(SYS_poll, 1));
  EXPECT_TRUE(EndedByLimit(SYS_rt_sigtimedwait, -EAGAIN));
  EXPECT_FALSE(EndedByLimit(SYS_rt_sigtimedwait, SIGUSR1));
}

}  // namespace
}  // namespace clew::recorder
