#include "bench/bpf_inputs/threads.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <thread>
#include <vector>

namespace clew::bench {
namespace {

constexpr size_t kSmallBytes = 64;
constexpr size_t kLargeBytes = 4096;
constexpr int kSmallPerRound = 3;
constexpr uint64_t kSliceMsMin = 4;  // where a round takes less

// Of a round, in the order of Worker::Round.
constexpr long kRound[] = {SYS_write,         SYS_write,         SYS_write,
                           SYS_write,         SYS_futex,         SYS_read,
                           SYS_read,          SYS_read,          SYS_read,
                           SYS_futex,  // wakes, then waits
                           SYS_clock_gettime, SYS_clock_gettime, SYS_epoll_wait,
                           SYS_poll,          SYS_getpid};
constexpr uint64_t kRoundCalls = std::size(kRound);

constexpr uint64_t kNanosPerSecond = 1'000'000'000;

[[noreturn]] void Fail(const char* what) {
  std::perror(what);
  _exit(1);
}

// What one thread of a pair reads from and the other one writes to.
struct Way {
  int small_in = -1;
  int small_out = -1;
  int large_in = -1;
  int large_out = -1;
};

Way MakeWay() {
  std::array<int, 2> small = {};
  std::array<int, 2> large = {};
  // Messages keep their bounds, so that each read returns what one write wrote.
  if (pipe(small.data()) != 0 ||
      socketpair(AF_UNIX, SOCK_SEQPACKET, 0, large.data()) != 0) {
    Fail("load: pipe");
  }
  return {.small_in = small[0],
          .small_out = small[1],
          .large_in = large[0],
          .large_out = large[1]};
}

// All that it calls it counts. The functions of the C library would make calls
// of their own, and time is read without one: pacing needs none, since a moment
// that has passed does not make it sleep.
class Worker {
 public:
  Worker(const CallPlan& plan, LoadBoard& board, uint32_t index,
         const std::vector<Way>& ways, int gate)
      : plan_(plan),
        board_(board),
        own_(board.rows[index]),
        other_(board.rows[OtherOf(plan, index)]),
        index_(index),
        in_(ways[index]),
        out_(ways[OtherOf(plan, index)]),
        gate_(gate),
        queue_(epoll_create1(0)) {
    epoll_event event = {.events = EPOLLIN, .data = {}};
    if (queue_ < 0 ||
        epoll_ctl(queue_, EPOLL_CTL_ADD, in_.small_in, &event) != 0) {
      Fail("load: epoll_create1");
    }
  }

  void Run() {
    board_.waiting.fetch_add(1);
    char byte = 0;
    Expect(1, SYS_read, gate_, &byte, 1);
    // Pairs one after another, so that the load is even.
    const uint64_t begin_ns =
        static_cast<uint64_t>(board_.begin_ns) +
        plan_.slice_ns() * (index_ / 2 * 2) / plan_.threads();
    for (uint64_t slice = 0; slice < plan_.slices(); ++slice) {
      const uint64_t at_ns = begin_ns + slice * plan_.slice_ns();
      const timespec at = {
          .tv_sec = static_cast<time_t>(at_ns / kNanosPerSecond),
          .tv_nsec = static_cast<long>(at_ns % kNanosPerSecond)};
      Expect(0, SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, &at,
             nullptr);
      for (uint64_t i = 0; i < plan_.rounds_per_slice(); ++i) {
        Round();
      }
    }
    Expect(0, SYS_clock_gettime, CLOCK_MONOTONIC, &own_.ended);
    board_.done.fetch_add(1);
    Call(SYS_exit, 0);
    std::abort();
  }

 private:
  // A thread without another one is its own.
  static uint32_t OtherOf(const CallPlan& plan, uint32_t index) {
    const uint32_t other = index ^ 1;
    return other < plan.threads() ? other : index;
  }

  template <class... Args>
  long Call(long number, Args... args) {
    own_.made.store(own_.made.load(std::memory_order_relaxed) + 1,
                    std::memory_order_relaxed);
    return syscall(number, args...);
  }
  template <class... Args>
  void Expect(long result, long number, Args... args) {
    if (Call(number, args...) != result) {
      Fail("load: a call");
    }
  }

  // Waits in `read` and in `futex` where the other one is not as far yet.
  void Round() {
    for (int i = 0; i < kSmallPerRound; ++i) {
      Expect(kSmallBytes, SYS_write, out_.small_out, bytes_.data(),
             kSmallBytes);
    }
    Expect(kLargeBytes, SYS_write, out_.large_out, bytes_.data(), kLargeBytes);
    other_.turns.fetch_add(1);
    Call(SYS_futex, &other_.turns, FUTEX_WAKE_PRIVATE, 1);
    for (int i = 0; i < kSmallPerRound; ++i) {
      Expect(kSmallBytes, SYS_read, in_.small_in, bytes_.data(), kSmallBytes);
    }
    Expect(kLargeBytes, SYS_read, in_.large_in, bytes_.data(), kLargeBytes);
    Call(SYS_futex, &own_.turns, FUTEX_WAIT_PRIVATE, rounds_++, nullptr);
    timespec now = {};
    Expect(0, SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    Expect(0, SYS_clock_gettime, CLOCK_REALTIME, &now);
    epoll_event event = {};
    Call(SYS_epoll_wait, queue_, &event, 1, 0);
    pollfd input = {.fd = in_.large_in, .events = POLLIN, .revents = 0};
    Call(SYS_poll, &input, 1, 0);
    Call(SYS_getpid);
  }

  const CallPlan& plan_;
  LoadBoard& board_;
  LoadBoard::Row& own_;
  LoadBoard::Row& other_;
  const uint32_t index_;
  const Way in_;
  const Way out_;
  const int gate_;
  const int queue_;
  uint32_t rounds_ = 0;
  std::array<char, kLargeBytes> bytes_ = {};
};

// Six descriptors a thread.
void RaiseFileLimit() {
  rlimit files = {};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  (void)setrlimit(RLIMIT_NOFILE, &files);  // opening says if it is too low
}

}  // namespace

CallPlan::CallPlan(const LoadShape& shape) : threads_(shape.threads) {
  const uint64_t calls_min =
      kSliceMsMin * shape.calls_per_second / 1000 / threads_;
  rounds_per_slice_ = std::max<uint64_t>(1, calls_min / kRoundCalls);
  slice_ns_ =
      kNanosPerSecond * threads_ * CallsPerSlice() / shape.calls_per_second;
  slices_ = std::max<uint64_t>(1, kNanosPerSecond * shape.seconds / slice_ns_);
}

uint64_t CallPlan::CallsPerSlice() const {
  return 1 + rounds_per_slice_ * kRoundCalls;
}

uint64_t CallPlan::calls() const { return 1 + slices_ * CallsPerSlice() + 2; }

bool CallPlan::Has(uint64_t place, uint64_t number) const {
  const auto is = [number](long wanted) {
    return number == static_cast<uint64_t>(wanted);
  };
  if (place == 0) {
    return is(SYS_read);
  }
  const uint64_t behind_gate = place - 1;
  if (behind_gate < slices_ * CallsPerSlice()) {
    const uint64_t in_slice = behind_gate % CallsPerSlice();
    return is(in_slice == 0 ? SYS_clock_nanosleep
                            : kRound[(in_slice - 1) % kRoundCalls]);
  }
  return (place == calls() - 2 && is(SYS_clock_gettime)) ||
         (place == calls() - 1 && is(SYS_exit));
}

void BeLoad(const CallPlan& plan, LoadBoard& board, int gate, int end) {
  RaiseFileLimit();
  std::vector<Way> ways;
  ways.reserve(plan.threads());
  for (uint32_t i = 0; i < plan.threads(); ++i) {
    ways.push_back(MakeWay());
  }
  for (uint32_t i = 0; i < plan.threads(); ++i) {
    std::thread([&plan, &board, &ways, i, gate] {
      Worker(plan, board, i, ways, gate).Run();
    }).detach();
  }
  while (board.waiting.load() < plan.threads()) {
    usleep(1000);
  }
  usleep(20'000);  // until they do
  getrusage(RUSAGE_SELF, &board.at_begin);
  board.begun.store(true);
  LoadBoard::Row& own = board.rows.back();
  char byte = 0;
  own.made.store(1);
  const bool is_told = syscall(SYS_read, end, &byte, 1) == 1;
  own.made.store(2);
  syscall(SYS_exit_group, is_told ? 0 : 1);
  std::abort();
}

}  // namespace clew::bench
