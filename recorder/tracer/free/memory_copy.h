#ifndef CLEW_RECORDER_TRACER_FREE_MEMORY_COPY_H_
#define CLEW_RECORDER_TRACER_FREE_MEMORY_COPY_H_

#include <cstdint>

#include "common/os/ptrace.h"
#include "common/result.h"
#include "recorder/tracer/free/free_stops.h"

namespace clew::tracer {

// The private memory of a program as it was at a moment: that of a process
// which the program made then, and which never runs. The kernel copies a page
// when the program writes to it.
//
//   program   stopped | clone | goes on, writes ...
//   copy              | traced, stopped before its first instruction ... |
//   killed
//
// The copy has the program's table of descriptors, not one of its own: what the
// program closes is closed. Its end sends no signal, and wait(2) does not see
// it but with __WALL; it is left to the program, which has to wait for it.
// Where the recorder dies it goes on, and ends at once. Moves.
class MemoryCopy {
 public:
  MemoryCopy() = default;  // of nothing
  // By a call that a thread is made to do. REQUIRES: all are stopped, this one
  // is parked. kSystem: the kernel refuses another process (RLIMIT_NPROC,
  // pids.max), or memory for it.
  [[nodiscard]] static Result<MemoryCopy> Make(FreeStops& stops, Tid tid,
                                               FreeStops::Thread& thread);
  MemoryCopy(MemoryCopy&& other) noexcept;
  MemoryCopy& operator=(MemoryCopy&& other) noexcept;
  MemoryCopy(const MemoryCopy&) = delete;
  MemoryCopy& operator=(const MemoryCopy&) = delete;
  ~MemoryCopy();

  int32_t process() const { return copy_; }

 private:
  explicit MemoryCopy(int32_t copy) : copy_(copy) {}

  int32_t copy_ = 0;  // 0: none
};

}  // namespace clew::tracer

#endif  // CLEW_RECORDER_TRACER_FREE_MEMORY_COPY_H_
