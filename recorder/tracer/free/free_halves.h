#ifndef CLEW_RECORDER_TRACER_FREE_FREE_HALVES_H_
#define CLEW_RECORDER_TRACER_FREE_FREE_HALVES_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <vector>

#include "common/os/ptrace.h"
#include "common/result.h"
#include "recorder/native/native_program.h"
#include "recorder/native/native_state.h"
#include "recorder/qemu/plugin_config.h"
#include "recorder/tracer/free/free_stops.h"
#include "recorder/tracer/free/free_threads.h"
#include "recorder/tracer/free/recording_ring.h"

namespace clew::tracer {

// The end of a program that runs free is kept: whenever a half of the ring is
// full, its threads stop for a moment, and the next one begins with what it is
// then.
//
// Where they cannot be stopped that is tried again, and the half that is
// written grows meanwhile. Beyond some size, or where the kernel refuses the
// process that keeps the memory, trace and inputs are dropped (SizeLimit), and
// the program goes on.
class FreeHalves {
 public:
  // All are borrowed. `ring_bytes` as of RecordingRing.
  FreeHalves(recorder::NativeState& state, recorder::NativeProgram& program,
             FreeThreads& threads, FreeStops& stops, uint64_t ring_bytes)
      : state_(state),
        program_(program),
        threads_(threads),
        stops_(stops),
        ring_(state, program, ring_bytes) {}

  // Begins a half if the one before is full, unless the program ends meanwhile.
  [[nodiscard]] Status BeginIfFull();
  // As RecordingRing::Join. No half begins any more.
  [[nodiscard]] Status Finish(recorder::Outcome& outcome);
  // Drops what is kept, and has the program wait for the processes that had its
  // memory, by a call of `thread`. REQUIRES: all threads are stopped in the
  // program, and this one is not about to receive a signal.
  [[nodiscard]] Status End(Tid thread);

 private:
  using Clock = std::chrono::steady_clock;

  [[nodiscard]] Result<bool> Stop();
  void NoteStop(Clock::duration stopped);
  [[nodiscard]] Status Write(RecordingRing::Start start,
                             const std::map<Tid, uint64_t>& since);
  [[nodiscard]] Result<RecordingRing::Start> Describe();
  [[nodiscard]] Status DescribeMemory(Tid caller, FreeThreads::Thread& thread,
                                      RecordingRing::Start& start);
  [[nodiscard]] Result<RecordingRing::Thread> DescribeThread(
      FreeThreads::Thread& thread);
  [[nodiscard]] Status WaitForCopies(Tid caller, FreeThreads::Thread& thread);

  recorder::NativeState& state_;
  recorder::NativeProgram& program_;
  FreeThreads& threads_;
  FreeStops& stops_;
  RecordingRing ring_;
  recorder::RingUse use_;
  Clock::time_point next_;  // no half begins before
  // That keep memory, or that the program has not waited for.
  std::vector<int32_t> copies_;
};

}  // namespace clew::tracer

#endif  // CLEW_RECORDER_TRACER_FREE_FREE_HALVES_H_
