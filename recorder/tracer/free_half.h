#ifndef CLEW_RECORDER_TRACER_FREE_HALF_H_
#define CLEW_RECORDER_TRACER_FREE_HALF_H_

#include <array>
#include <cstdint>
#include <vector>

#include "common/os/ptrace.h"
#include "common/result.h"
#include "recorder/native/native_program.h"
#include "recorder/native/native_state.h"
#include "recorder/tracer/free_threads.h"
#include "recorder/tracer/recording_ring.h"
#include "recorder/tracer/shared_memory.h"

namespace clew::tracer {

// With what the halves of a ring begin, of a program that runs free.
class FreeHalves {
 public:
  // All are borrowed.
  FreeHalves(recorder::NativeState& state, recorder::NativeProgram& program,
             SharedMemory& shared, FreeThreads& threads)
      : state_(state), program_(program), shared_(shared), threads_(threads) {}

  // Describes the program as it is now. REQUIRES: its threads are stopped, and
  // all that they logged was taken. kSystem: the kernel refuses the process
  // that keeps the memory.
  [[nodiscard]] Result<RecordingRing::Start> Describe();

  // Has the program wait for those of the processes that have ended, by a call
  // of `thread`. REQUIRES: all threads are stopped.
  [[nodiscard]] Status Reap(Tid thread);
  // Those that keep memory, and those that the program has not waited for.
  const std::vector<int32_t>& copies() const { return copies_; }

 private:
  [[nodiscard]] Status DescribeMemory(Tid caller, RecordingRing::Start& start);
  [[nodiscard]] Status WaitForCopies(Tid caller);
  [[nodiscard]] Result<RecordingRing::Thread> DescribeThread(
      FreeThreads::Thread& thread);
  [[nodiscard]] Result<int64_t> Call(Tid thread, uint64_t number,
                                     const std::array<uint64_t, 6>& args);

  recorder::NativeState& state_;
  recorder::NativeProgram& program_;
  SharedMemory& shared_;
  FreeThreads& threads_;
  std::vector<int32_t> copies_;
};

}  // namespace clew::tracer

#endif  // CLEW_RECORDER_TRACER_FREE_HALF_H_
