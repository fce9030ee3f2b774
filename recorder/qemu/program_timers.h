#ifndef CLEW_RECORDER_QEMU_PROGRAM_TIMERS_H_
#define CLEW_RECORDER_QEMU_PROGRAM_TIMERS_H_

#include <time.h>

#include <compare>
#include <cstdint>
#include <map>
#include <optional>

#include "recorder/qemu/lateness.h"
#include "recorder/qemu/virtual_clock.h"

namespace clew::recorder {

// The timers that the program has set: timerfd_settime, timer_settime,
// setitimer, alarm. The host's kernel runs them by the host's clock, and the
// program reads the virtual one, which may be slower or stand at another time.
// So the host is told how long a timer has to run, whatever the program said,
// and when it has expired there, the virtual clock is moved on to the time for
// which the program set it: no timer is early.
//
// Times of the host are of CLOCK_MONOTONIC, in ns. Not thread-safe.
class ProgramTimers {
 public:
  enum class Kind : uint8_t { kDescriptor, kPosix, kReal };
  struct Key {
    Kind kind = Kind::kReal;
    uint64_t id = 0;
    auto operator<=>(const Key&) const = default;
  };
  struct Now {
    uint64_t host_ns = 0;
    uint64_t ticks = 0;
  };

  // `clock` outlives this.
  ProgramTimers(const VirtualClock& clock, uint64_t seed)
      : clock_(&clock), lateness_(seed) {}

  // The program sets a timer of `clock_id` to `wanted`, which is a time of that
  // clock if `absolute`. Returns what the host is to be told, as a duration;
  // nullopt, with nothing noted: a clock that VirtualClock is not, or times
  // that the kernel refuses.
  std::optional<itimerspec> Set(const Key& key, uint64_t clock_id,
                                bool absolute, const itimerspec& wanted,
                                const Now& now);
  // What is left of a timer by the virtual clock, where `host_left` is what the
  // host says is left.
  itimerspec Left(const Key& key, const itimerspec& host_left,
                  const Now& now) const;
  // The time up to which the virtual clock is to be moved, because timers have
  // expired; nullopt: none has.
  std::optional<uint64_t> ExpiredNs(uint64_t host_ns);
  bool empty() const { return armed_.empty(); }
  bool IsArmed(const Key& key) const { return armed_.contains(key); }

 private:
  struct Armed {
    uint64_t host_ns = 0;      // when it expires next
    uint64_t due_ns = 0;       // when it should, by the virtual clock
    uint64_t late_ns = 0;      // how much later it does
    uint64_t interval_ns = 0;  // 0: once
  };
  static void Advance(Armed& timer, uint64_t host_ns);

  const VirtualClock* clock_;
  Lateness lateness_;
  std::map<Key, Armed> armed_;
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_PROGRAM_TIMERS_H_
