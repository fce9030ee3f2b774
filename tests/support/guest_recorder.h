#ifndef CLEW_TESTS_SUPPORT_GUEST_RECORDER_H_
#define CLEW_TESTS_SUPPORT_GUEST_RECORDER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "common/inputs.h"
#include "common/schedule.h"
#include "common/stream.h"
#include "follower/recording.h"
#include "machine/store_buffer.h"

namespace clew::test {

struct GuestRecorderOptions {
  uint64_t seed = 1;
  uint32_t cores = 4;
  uint32_t quantum_insns_max = 60;
  uint64_t time_slice_ticks = 3000;
  uint64_t window_ticks = 1024;  // time is known to this granularity; 0: not
  uint64_t insns_max = 2'000'000;
  // System calls say when the kernel was entered and left; not with
  // window_ticks 0.
  bool call_times = true;
  // Blocks of several instructions, as the decoder makes them: a block ends
  // with a branch that may go two ways, a system call, a time window, a slice.
  bool merge_blocks = false;
  // Stores wait as this model says and leave late: one by one, before one of
  // `flush_one_in` instructions of their thread, and where they have to. Then
  // truth().schedule has their steps. Borrowed.
  const machine::MemoryModel* model = nullptr;
  uint32_t flush_one_in = 40;
  // After one quantum in so many, a sleeper is woken as by a signal that
  // another thread took: the kernel begins its wait anew. 0: never.
  uint32_t interrupt_one_in = 0;
};

// What really happened, to compare with.
struct GuestTruth {
  std::vector<ScheduleStep> schedule;
  uint64_t memory_digest = 0;
  uint64_t insns = 0;
  int64_t exit_status = 0;
  // When each instruction retired, in the thread's program order.
  std::map<Tid, std::vector<TscTicks>> ticks;
};

// A recording made without QEMU or PT: the machine itself runs code of the test
// program, several threads on virtual cores in a seeded random interleaving,
// with a small kernel of its own (clone, exit, futex, exit_group). Each
// instruction is its own stream block unless merge_blocks; times are rounded to
// windows.
//
// It shares the machine with what it tests, so it is an oracle for the follower
// and the search, not for instruction semantics.
class GuestRecording {
 public:
  // Runs `entry(argument)` as thread 100 until exit_group, a fault (recorded as
  // SIGSEGV), all threads asleep (a hang) or insns_max.
  static GuestRecording Make(void (*entry)(uint64_t), uint64_t argument,
                             const GuestRecorderOptions& options);

  const follower::Recording& recording() const { return recording_; }
  const GuestTruth& truth() const { return truth_; }
  // For tests that falsify evidence.
  std::map<Tid, std::vector<StreamBlock>>& blocks() { return data_->blocks; }
  std::map<Tid, std::vector<InputRecord>>& inputs() { return data_->inputs; }
  std::vector<Slice>& slices() { return data_->slices; }

 private:
  friend class GuestKernel;
  struct Data {
    std::vector<Tid> threads;
    std::vector<Slice> slices;
    std::map<Tid, std::vector<StreamBlock>> blocks;
    std::map<Tid, std::vector<InputRecord>> inputs;
  };
  std::shared_ptr<Data> data_ = std::make_shared<Data>();
  follower::Recording recording_;
  GuestTruth truth_;
};

// For guest code: system calls by hand, no libc.
extern "C" {
// Starts fn(argument) in a new thread on the given stack; returns its tid.
int64_t GuestSpawn(void (*fn)(uint64_t), uint64_t argument, void* stack_top);
int64_t GuestSyscall(uint64_t number, uint64_t a, uint64_t b, uint64_t c);
}

}  // namespace clew::test

#endif  // CLEW_TESTS_SUPPORT_GUEST_RECORDER_H_
