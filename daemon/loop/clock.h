#ifndef CLEW_DAEMON_LOOP_CLOCK_H_
#define CLEW_DAEMON_LOOP_CLOCK_H_

#include <cstdint>

namespace clew::daemon {

// What time it is; tests have their own.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual uint64_t MonotonicNs() = 0;  // CLOCK_MONOTONIC
  virtual int64_t WallNs() = 0;        // since 1970
  uint64_t MonotonicMs() { return MonotonicNs() / 1'000'000; }
};

// Lives as long as the program.
Clock& SystemClock();

}  // namespace clew::daemon

#endif  // CLEW_DAEMON_LOOP_CLOCK_H_
