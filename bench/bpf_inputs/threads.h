#ifndef CLEW_BENCH_BPF_INPUTS_THREADS_H_
#define CLEW_BENCH_BPF_INPUTS_THREADS_H_

#include <sys/resource.h>
#include <time.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace clew::bench {

// Threads that together make so many system calls a second.
struct LoadShape {
  static constexpr uint32_t kThreadsMax = 1000;

  uint32_t threads = 100;
  uint32_t calls_per_second = 50'000;
  uint32_t seconds = 5;
};

// The calls of each thread from when it is let go on, one after another: known
// beforehand, so that what a recorder tells can be checked place by place.
//
//   read (lets it go), slices { clock_nanosleep, rounds { 15 calls } },
//   clock_gettime, exit
class CallPlan {
 public:
  explicit CallPlan(const LoadShape& shape);

  uint32_t threads() const { return threads_; }
  uint64_t slices() const { return slices_; }
  uint64_t slice_ns() const { return slice_ns_; }
  uint64_t rounds_per_slice() const { return rounds_per_slice_; }
  // Of one thread.
  uint64_t calls() const;
  // Which one is at `place`, from 0 on; none is there behind the last.
  bool Has(uint64_t place, uint64_t number) const;

 private:
  uint64_t CallsPerSlice() const;

  uint32_t threads_;
  uint64_t rounds_per_slice_;
  uint64_t slice_ns_;
  uint64_t slices_;
};

// What the load and its parent share; all zero at first.
struct LoadBoard {
  // The last is that of the first thread, which makes no load.
  struct alignas(64) Row {
    std::atomic<uint64_t> made;   // calls, that which is being made included
    std::atomic<uint32_t> turns;  // rounds that the other one of the pair ended
    timespec ended;               // CLOCK_MONOTONIC
  };
  std::atomic<uint32_t> waiting;  // threads
  std::atomic<uint32_t> done;     // likewise
  std::atomic<bool> begun;        // `at_begin` is there
  rusage at_begin;
  int64_t begin_ns;  // CLOCK_MONOTONIC; set before the threads are let go
  std::array<Row, LoadShape::kThreadsMax + 1> rows;
};

// Becomes the load: a thread for each byte of `gate`, which write to each other
// in pairs, read, and wait for each other. Ends with exit status 0 after a byte
// of `end`; with 1, at once, if a call fails.
[[noreturn]] void BeLoad(const CallPlan& plan, LoadBoard& board, int gate,
                         int end);

}  // namespace clew::bench

#endif  // CLEW_BENCH_BPF_INPUTS_THREADS_H_
