#ifndef CLEW_RECORDER_QEMU_CALLS_TIMED_WAIT_H_
#define CLEW_RECORDER_QEMU_CALLS_TIMED_WAIT_H_

#include <cstdint>
#include <optional>

#include "recorder/qemu/calls/syscall_effects.h"
#include "recorder/qemu/guest_memory.h"
#include "recorder/qemu/virtual_clock.h"

namespace clew::recorder {

// A call that waits until a time, or until a futex's word changes.
struct TimedWait {
  uint64_t deadline_ns = 0;    // on the virtual clock
  uint64_t timespec_addr = 0;  // where the program keeps its time limit
  uint64_t clock = 0;          // by which it is meant
  bool absolute = false;       // how it keeps it
  bool is_futex = false;       // else a sleep
  uint64_t futex_addr = 0;
  uint32_t futex_value = 0;

  // Whether the futex's word is another by now.
  bool Changed(const GuestMemory& memory) const {
    return is_futex && memory.Load<uint32_t>(futex_addr) != futex_value;
  }
};

// The wait that `call` asks for at `ticks`: FUTEX_WAIT and FUTEX_WAIT_BITSET
// with a time limit, nanosleep, clock_nanosleep. nullopt: another call, one
// that would not wait, a clock that VirtualClock is not, or arguments that the
// kernel refuses.
std::optional<TimedWait> ParseTimedWait(const SyscallCall& call,
                                        const GuestMemory& memory,
                                        const VirtualClock& clock,
                                        uint64_t ticks);

// When the wait of another call ends by the time limit that the host's kernel
// keeps for it: poll, select, epoll_wait and their kin, rt_sigtimedwait,
// semtimedop, mq_timedsend, mq_timedreceive. By the virtual clock, for a call
// made at `ticks`; nullopt: it has none.
std::optional<uint64_t> HostLimit(const SyscallCall& call,
                                  const GuestMemory& memory,
                                  const VirtualClock& clock, uint64_t ticks);
// Whether a result of such a call, or of a TimedWait's, says that its time
// limit ended it.
bool EndedByLimit(uint64_t number, int64_t result);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_CALLS_TIMED_WAIT_H_
