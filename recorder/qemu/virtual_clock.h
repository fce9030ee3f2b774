#ifndef CLEW_RECORDER_QEMU_VIRTUAL_CLOCK_H_
#define CLEW_RECORDER_QEMU_VIRTUAL_CLOCK_H_

#include <time.h>

#include <cstdint>
#include <optional>

namespace clew::recorder {

// The time that the program is shown: it passes with the instructions that all
// cores retire, and where nothing can run it is moved on. So it does not depend
// on how fast the host is, and times written in it come in the same order in
// every run. In nanoseconds since the recording began. Not thread-safe.
class VirtualClock {
 public:
  // About what an instruction takes to be recorded.
  static constexpr uint64_t kNsPerTick = 10;
  static constexpr uint64_t kNever = UINT64_MAX;

  // What the program's clocks show at the start. Whole seconds, so that where a
  // sum carries over into the next second does not depend on the start.
  struct Start {
    int64_t realtime_s = 0;
    int64_t monotonic_s = 0;
  };
  static Start HostsStart();

  explicit VirtualClock(const Start& start) : start_(start) {}

  uint64_t Now(uint64_t ticks) const {
    return ticks * kNsPerTick + skipped_ns_;
  }
  void Skip(uint64_t ns) { skipped_ns_ += ns; }

  // What clock `id` shows; nullopt: a clock that this is not, like CPU time.
  std::optional<timespec> Show(uint64_t id, uint64_t ticks) const;
  // When clock `id` shows `time` (kNever: too late to say, 0: before the
  // start); nullopt as above. REQUIRES: IsTime(time).
  std::optional<uint64_t> When(uint64_t id, const timespec& time) const;

 private:
  std::optional<int64_t> StartOf(uint64_t id) const;

  Start start_;
  uint64_t skipped_ns_ = 0;
};

// What the kernel takes for a time: seconds >= 0, nanoseconds of one second.
bool IsTime(const timespec& time);
// kNever where it does not fit. REQUIRES: IsTime(time).
uint64_t Nanoseconds(const timespec& time);
timespec ToTimespec(uint64_t ns);

// CLOCK_MONOTONIC of the host.
uint64_t HostNs();

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_VIRTUAL_CLOCK_H_
