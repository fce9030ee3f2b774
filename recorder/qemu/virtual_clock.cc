#include "recorder/qemu/virtual_clock.h"

#include "common/units.h"

namespace clew::recorder {
namespace {

// Far beyond any run, and far from overflow.
constexpr int64_t kSecondsMax = 4'000'000'000;

int64_t HostSeconds(clockid_t id) {
  timespec now = {};
  clock_gettime(id, &now);
  return now.tv_sec;
}

}  // namespace

VirtualClock::Start VirtualClock::HostsStart() {
  return {.realtime_s = HostSeconds(CLOCK_REALTIME),
          .monotonic_s = HostSeconds(CLOCK_MONOTONIC)};
}

std::optional<int64_t> VirtualClock::StartOf(uint64_t id) const {
  switch (id) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
    case CLOCK_TAI:
      return start_.realtime_s;
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_BOOTTIME:
      return start_.monotonic_s;
    default:
      return std::nullopt;
  }
}

std::optional<timespec> VirtualClock::Show(uint64_t id, uint64_t ticks) const {
  const auto start = StartOf(id);
  if (!start) {
    return std::nullopt;
  }
  timespec shown = ToTimespec(Now(ticks));
  shown.tv_sec += *start;
  return shown;
}

std::optional<uint64_t> VirtualClock::When(uint64_t id,
                                           const timespec& time) const {
  const auto start = StartOf(id);
  if (!start) {
    return std::nullopt;
  }
  if (time.tv_sec < *start) {
    return 0;
  }
  return Nanoseconds({.tv_sec = time.tv_sec - *start, .tv_nsec = time.tv_nsec});
}

bool IsTime(const timespec& time) {
  return time.tv_sec >= 0 && time.tv_nsec >= 0 &&
         static_cast<uint64_t>(time.tv_nsec) < kNsPerSecond;
}

uint64_t Nanoseconds(const timespec& time) {
  if (time.tv_sec > kSecondsMax) {
    return VirtualClock::kNever;
  }
  return static_cast<uint64_t>(time.tv_sec) * kNsPerSecond +
         static_cast<uint64_t>(time.tv_nsec);
}

timespec ToTimespec(uint64_t ns) {
  return {.tv_sec = static_cast<time_t>(ns / kNsPerSecond),
          .tv_nsec = static_cast<long>(ns % kNsPerSecond)};
}

uint64_t HostNs() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return Nanoseconds(now);
}

}  // namespace clew::recorder
