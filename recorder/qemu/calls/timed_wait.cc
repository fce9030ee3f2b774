#include "recorder/qemu/calls/timed_wait.h"

#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>

#include <algorithm>
#include <cerrno>

#include "common/linux/futex_command.h"
#include "common/units.h"

namespace clew::recorder {
namespace {

constexpr uint64_t kNsPerUs = 1000;
constexpr uint64_t kNsPerMs = 1'000'000;

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

std::optional<uint64_t> LimitAt(const Limit& limit, const GuestMemory& memory,
                                const VirtualClock& clock, uint64_t ticks) {
  const auto time =
      limit.addr == 0 ? std::nullopt : memory.Load<timespec>(limit.addr);
  return time && IsTime(*time) ? Deadline(limit, *time, clock, ticks)
                               : std::nullopt;
}

// No more than a time limit that is an int; negative ones never end.
uint64_t Milliseconds(uint64_t argument) {
  const int32_t ms = std::max(static_cast<int32_t>(argument), 0);
  return static_cast<uint64_t>(ms) * kNsPerMs;
}

// The kernel takes microseconds of more than a second, too. Longer ones than
// that are no time that passes.
uint64_t Nanoseconds(const timeval& time) {
  constexpr int64_t kSecondsMax = 1'000'000'000;
  const auto within = [](int64_t count, int64_t most) {
    return static_cast<uint64_t>(std::clamp<int64_t>(count, 0, most));
  };
  return within(time.tv_sec, kSecondsMax) * kNsPerSecond +
         within(time.tv_usec, kSecondsMax) * kNsPerUs;
}

// As HostLimit, also where the call does not wait.
std::optional<uint64_t> EndOfLimit(const SyscallCall& call,
                                   const GuestMemory& memory,
                                   const VirtualClock& clock, uint64_t ticks) {
  const auto at = [&](size_t argument, bool absolute = false) {
    return LimitAt({.addr = call.args[argument],
                    .clock = absolute ? uint64_t{CLOCK_REALTIME}
                                      : uint64_t{CLOCK_MONOTONIC},
                    .absolute = absolute},
                   memory, clock, ticks);
  };
  switch (call.number) {
    case SYS_poll:
      return clock.Now(ticks) + Milliseconds(call.args[2]);
    case SYS_epoll_wait:
    case SYS_epoll_pwait:
      return clock.Now(ticks) + Milliseconds(call.args[3]);
    case SYS_select: {
      const auto limit = memory.Load<timeval>(call.args[4]);
      return limit && call.args[4] != 0
                 ? std::optional(clock.Now(ticks) + Nanoseconds(*limit))
                 : std::nullopt;
    }
    case SYS_pselect6:
      return at(4);
    case SYS_ppoll:
    case SYS_rt_sigtimedwait:
      return at(2);
    case SYS_epoll_pwait2:
    case SYS_semtimedop:
      return at(3);
    case SYS_mq_timedsend:
    case SYS_mq_timedreceive:
      return at(4, true);
    default:
      return std::nullopt;
  }
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
                 .clock = limit->clock,
                 .absolute = limit->absolute,
                 .is_futex = call.number == SYS_futex,
                 .futex_addr = call.args[0],
                 .futex_value = static_cast<uint32_t>(call.args[2])};
  return wait.Changed(memory) ? std::nullopt : std::optional(wait);
}

std::optional<uint64_t> HostLimit(const SyscallCall& call,
                                  const GuestMemory& memory,
                                  const VirtualClock& clock, uint64_t ticks) {
  const auto end = EndOfLimit(call, memory, clock, ticks);
  return end && *end > clock.Now(ticks) ? end : std::nullopt;
}

bool EndedByLimit(uint64_t number, int64_t result) {
  switch (number) {
    case SYS_rt_sigtimedwait:
    case SYS_semtimedop:
      return result == -EAGAIN;
    case SYS_futex:
    case SYS_mq_timedsend:
    case SYS_mq_timedreceive:
      return result == -ETIMEDOUT;
    default:
      return result == 0;
  }
}

}  // namespace clew::recorder
