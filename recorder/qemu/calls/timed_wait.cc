#include "recorder/qemu/calls/timed_wait.h"

#include <sys/syscall.h>
#include <time.h>

#include "common/linux/futex_command.h"

namespace clew::recorder {
namespace {

// A time limit as an argument gives it.
struct Limit {
  uint64_t addr = 0;
  uint64_t clock = CLOCK_MONOTONIC;
  bool absolute = false;
};

std::optional<Limit> FutexLimit(const SyscallCall& call) {
  const int operation = static_cast<int>(call.args[1]);
  switch (FutexCommand(call.args[1])) {
    case FUTEX_WAIT:
      return Limit{.addr = call.args[3]};
    case FUTEX_WAIT_BITSET:
      return Limit{.addr = call.args[3],
                   .clock = (operation & FUTEX_CLOCK_REALTIME) != 0
                                ? uint64_t{CLOCK_REALTIME}
                                : uint64_t{CLOCK_MONOTONIC},
                   .absolute = true};
    default:
      return std::nullopt;
  }
}

std::optional<Limit> LimitOf(const SyscallCall& call) {
  switch (call.number) {
    case SYS_futex:
      return FutexLimit(call);
    case SYS_nanosleep:
      return Limit{.addr = call.args[0]};
    case SYS_clock_nanosleep:
      return Limit{
          .addr = call.args[2],
          .clock = call.args[0],
          .absolute = (static_cast<int>(call.args[1]) & TIMER_ABSTIME) != 0};
    default:
      return std::nullopt;
  }
}

std::optional<uint64_t> Deadline(const Limit& limit, const timespec& time,
                                 const VirtualClock& clock, uint64_t ticks) {
  const auto at = clock.When(limit.clock, time);
  if (!at || limit.absolute) {
    return at;
  }
  const uint64_t wait = Nanoseconds(time);
  const uint64_t now = clock.Now(ticks);
  return wait > VirtualClock::kNever - now ? VirtualClock::kNever : now + wait;
}

}  // namespace

std::optional<TimedWait> ParseTimedWait(const SyscallCall& call,
                                        const GuestMemory& memory,
                                        const VirtualClock& clock,
                                        uint64_t ticks) {
  const auto limit = LimitOf(call);
  if (!limit || limit->addr == 0) {
    return std::nullopt;
  }
  const auto time = memory.Load<timespec>(limit->addr);
  if (!time || !IsTime(*time)) {
    return std::nullopt;
  }
  const auto deadline = Deadline(*limit, *time, clock, ticks);
  if (!deadline) {
    return std::nullopt;
  }
  TimedWait wait{.deadline_ns = *deadline,
                 .timespec_addr = limit->addr,
                 .absolute = limit->absolute,
                 .is_futex = call.number == SYS_futex,
                 .futex_addr = call.args[0],
                 .futex_value = static_cast<uint32_t>(call.args[2])};
  return wait.Changed(memory) ? std::nullopt : std::optional(wait);
}

}  // namespace clew::recorder
