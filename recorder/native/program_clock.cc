#include "recorder/native/program_clock.h"

#include <asm/unistd_64.h>
#include <sys/time.h>

#include <algorithm>

namespace clew::recorder {

void ProgramClock::SkipTo(uint64_t ns, uint64_t ticks) {
  const uint64_t now = clock_.Now(ticks);
  clock_.Skip(ns - std::min(ns, now));
}

void ProgramClock::CatchUp(uint64_t ticks) {
  if (!timers_.empty()) {
    if (const auto expired = timers_.ExpiredNs(HostNs())) {
      SkipTo(*expired, ticks);
    }
  }
}

void ProgramClock::EndWait(uint64_t end_ns, uint64_t ticks) {
  if (end_ns != VirtualClock::kNever) {
    SkipTo(end_ns + lateness_.DrawNs(), ticks);
  }
}

int64_t ProgramClock::Show(const SyscallCall& call, int64_t result,
                           const GuestMemory& memory, uint64_t ticks) {
  const bool reads = call.number == __NR_clock_gettime ||
                     call.number == __NR_gettimeofday ||
                     call.number == __NR_time;
  if (!reads || result < 0) {
    return result;
  }
  CatchUp(ticks);
  const bool is_clock = call.number == __NR_clock_gettime;
  const auto time =
      clock_.Show(is_clock ? call.args[0] : CLOCK_REALTIME, ticks);
  if (!time) {
    return result;
  }
  const auto write = [&](uint64_t addr, const auto& value) {
    if (addr != 0) {
      (void)memory.Write(addr, &value, sizeof(value));  // the kernel just could
    }
  };
  switch (call.number) {
    case __NR_clock_gettime:
      write(call.args[1], *time);
      return result;
    case __NR_gettimeofday:
      write(call.args[0],
            timeval{.tv_sec = time->tv_sec, .tv_usec = time->tv_nsec / 1000});
      return result;
    default:
      write(call.args[0], time->tv_sec);
      return time->tv_sec;
  }
}

}  // namespace clew::recorder
