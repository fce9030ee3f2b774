#include "collector/clocks.h"

#include <time.h>

namespace clew::collector {

int64_t Wall_s() { return static_cast<int64_t>(time(nullptr)); }

uint64_t Steady_s() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<uint64_t>(now.tv_sec);
}

}  // namespace clew::collector
