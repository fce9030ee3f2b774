#include "daemon/loop/clock.h"

#include <ctime>

namespace clew::daemon {
namespace {

uint64_t Read(clockid_t clock) {
  timespec now = {};
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<uint64_t>(now.tv_nsec);
}

class System final : public Clock {
 public:
  uint64_t MonotonicNs() override { return Read(CLOCK_MONOTONIC); }
  int64_t WallNs() override {
    return static_cast<int64_t>(Read(CLOCK_REALTIME));
  }
};

}  // namespace

Clock& SystemClock() {
  static System clock;
  return clock;
}

}  // namespace clew::daemon
