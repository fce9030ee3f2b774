#ifndef CLEW_RECORDER_TRACER_FREE_STOPS_H_
#define CLEW_RECORDER_TRACER_FREE_STOPS_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "common/os/ptrace.h"
#include "common/result.h"
#include "recorder/native/native_state.h"
#include "recorder/tracer/free_threads.h"
#include "recorder/tracer/shared_memory.h"

namespace clew::tracer {

// Brings the threads of a program that runs free to a stop in the program:
//
//   in its code       parks at its next boundary, which is within 512 records
//   waiting in a call is stopped there; the call has not returned
class FreeStops {
 public:
  // All are borrowed. `on_stop` is told of each stop of a thread, and says
  // what comes of it.
  FreeStops(recorder::NativeState& state, SharedMemory& shared,
            FreeThreads& threads,
            std::function<Status(Tid, const TraceeStop&)> on_stop)
      : state_(state),
        process_(state.process),
        shared_(shared),
        threads_(threads),
        on_stop_(std::move(on_stop)) {}

  // Looks for stops of threads. Returns whether there was one.
  [[nodiscard]] Result<bool> Look();
  // Brings all threads to a stop, and takes all that they have logged. Returns
  // whether they are: false if they are not within that time, or if they are to
  // go on and the program ends before. `for_good`: they are not to go on.
  [[nodiscard]] Result<bool> StopAll(bool for_good,
                                     std::chrono::milliseconds within);
  // They go on from there: first those that wait in calls, so that they do
  // again before others run. Returns since when each may run (TSC).
  [[nodiscard]] Result<std::map<Tid, uint64_t>> GoOn();
  // Why the program is gone.
  [[nodiscard]] Status EndedFromOutside() const;

 private:
  using Thread = FreeThreads::Thread;
  using Stopped = FreeThreads::Stopped;

  [[nodiscard]] Result<bool> AreStopped(bool for_good);
  [[nodiscard]] Result<bool> Interrupt(Tid tid, Thread& thread);
  [[nodiscard]] Status StopInCall(Tid tid, Thread& thread);

  recorder::NativeState& state_;
  TracedProcess& process_;
  SharedMemory& shared_;
  FreeThreads& threads_;
  std::function<Status(Tid, const TraceeStop&)> on_stop_;
};

}  // namespace clew::tracer

#endif  // CLEW_RECORDER_TRACER_FREE_STOPS_H_
