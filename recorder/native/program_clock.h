#ifndef CLEW_RECORDER_NATIVE_PROGRAM_CLOCK_H_
#define CLEW_RECORDER_NATIVE_PROGRAM_CLOCK_H_

#include <cstdint>
#include <optional>

#include "recorder/qemu/calls/syscall_effects.h"
#include "recorder/qemu/guest_memory.h"
#include "recorder/qemu/lateness.h"
#include "recorder/qemu/program_timers.h"
#include "recorder/qemu/virtual_clock.h"

namespace clew::recorder {

// The time that a program reads whose threads run one after another, and the
// timers that it has set. `ticks` is NativeState::now.
class ProgramClock {
 public:
  explicit ProgramClock(uint64_t seed)
      : clock_(VirtualClock::HostsStart()),
        timers_(clock_, seed),
        lateness_(~seed) {}
  ProgramClock(const ProgramClock&) = delete;
  ProgramClock& operator=(const ProgramClock&) = delete;

  const VirtualClock& clock() const { return clock_; }
  ProgramTimers& timers() { return timers_; }

  // It is `ns` by the virtual clock, if it is not later.
  void SkipTo(uint64_t ns, uint64_t ticks);
  // Real time in which no thread could run.
  void Pass(uint64_t ns) { clock_.Skip(ns); }
  // The program is about to read its clock: it is no earlier there than the
  // timers that have expired.
  void CatchUp(uint64_t ticks);
  // A wait ended by its time limit, which is `end_ns` by the virtual clock: it
  // is some time later.
  void EndWait(uint64_t end_ns, uint64_t ticks);

  // Writes the virtual time where the kernel has just written, for `call`, the
  // host's. Returns the result that the program sees in the place of `result`.
  int64_t Show(const SyscallCall& call, int64_t result,
               const GuestMemory& memory, uint64_t ticks);

 private:
  VirtualClock clock_;
  ProgramTimers timers_;
  Lateness lateness_;
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_NATIVE_PROGRAM_CLOCK_H_
