#ifndef CLEW_RECORDER_TRACER_FREE_FREE_STOPS_H_
#define CLEW_RECORDER_TRACER_FREE_FREE_STOPS_H_

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "common/os/ptrace.h"
#include "common/result.h"
#include "recorder/native/native_state.h"
#include "recorder/tracer/free/free_threads.h"
#include "recorder/tracer/shared_memory.h"

namespace clew::tracer {

// Brings the threads of a program that runs free to a stop in the program:
//
//   in its code       parks at its next boundary, which is within 512 records
//   waiting in a call is stopped there; the call has not returned
//
// Those that are to go on are never stopped such that they do not, should the
// recorder be killed.
class FreeStops {
 public:
  // What a thread was made to call, and the process that it made.
  struct Call {
    int64_t result = 0;  // an error as -errno
    Tid made = Tid(0);   // stopped before its first instruction
  };

  // All are borrowed. `on_stop` is told of each stop of a thread, `on_park` of
  // each that parks, and says what comes of it.
  FreeStops(recorder::NativeState& state, SharedMemory& shared,
            FreeThreads& threads,
            std::function<Status(Tid, const TraceeStop&)> on_stop,
            std::function<Status(Tid, FreeThreads::Thread&)> on_park)
      : state_(state),
        process_(state.process),
        shared_(shared),
        threads_(threads),
        on_stop_(std::move(on_stop)),
        on_park_(std::move(on_park)) {}

  using Thread = FreeThreads::Thread;

  // Looks for stops of threads, and for those that park. Returns whether there
  // was one.
  [[nodiscard]] Result<bool> Look();
  // Brings all threads to a stop, and takes all that they have logged. Returns
  // whether they are: false if they are not within that time, or if they are to
  // go on and the program ends before. `for_good`: they are not to go on. Else
  // none is stopped in a call before one is parked.
  [[nodiscard]] Result<bool> StopAll(bool for_good,
                                     std::chrono::milliseconds within);
  // They go on from there: first those that wait in calls, so that they do
  // again before others run. Returns since when each may run (TSC).
  [[nodiscard]] Result<std::map<Tid, uint64_t>> GoOn();
  // Lets a thread go on that is parked.
  void Release(Thread& thread);
  // Stops a thread that is parked by ptrace(2), too; its registers are the
  // runtime's. It goes on to wait with TracedProcess::Continue.
  [[nodiscard]] Status Halt(Tid tid, Thread& thread);
  // Has a thread that is parked make a call which does not wait. kUnsupported:
  // it does not, or the program was ended.
  [[nodiscard]] Result<Call> MakeCall(Tid tid, Thread& thread, uint64_t number,
                                      const std::array<uint64_t, 6>& args);
  // Why the program is gone.
  [[nodiscard]] Status EndedFromOutside() const;

 private:
  using Stopped = FreeThreads::Stopped;

  [[nodiscard]] Result<bool> LookAt(Tid tid, Thread* thread);
  [[nodiscard]] Result<bool> AreStopped(bool for_good);
  [[nodiscard]] Result<bool> Interrupt(Tid tid, Thread& thread);
  [[nodiscard]] Status StopInCall(Tid tid, Thread& thread);

  recorder::NativeState& state_;
  TracedProcess& process_;
  SharedMemory& shared_;
  FreeThreads& threads_;
  std::function<Status(Tid, const TraceeStop&)> on_stop_;
  std::function<Status(Tid, Thread&)> on_park_;
};

}  // namespace clew::tracer

#endif  // CLEW_RECORDER_TRACER_FREE_FREE_STOPS_H_
