// No clock goes back, CPU time is not more than passes, and the resolution is
// told: clock_gettime(2), clock_getres(2).
#include <sys/time.h>
#include <time.h>

#include "check.h"

static long Read(clockid_t clock) {
  struct timespec now;
  CHECK(clock_gettime(clock, &now) == 0);
  CHECK(now.tv_nsec >= 0 && now.tv_nsec < 1000000000);
  return now.tv_sec * 1000000000 + now.tv_nsec;
}

int main(void) {
  const clockid_t clocks[] = {CLOCK_MONOTONIC, CLOCK_BOOTTIME,
                              CLOCK_PROCESS_CPUTIME_ID,
                              CLOCK_THREAD_CPUTIME_ID};
  for (unsigned i = 0; i < 4; ++i) {
    long last = Read(clocks[i]);
    for (int j = 0; j < 20; ++j) {
      const long now = Read(clocks[i]);
      CHECK(now >= last);
      last = now;
    }
  }
  struct timespec unit;
  CHECK(clock_getres(CLOCK_MONOTONIC, &unit) == 0 && unit.tv_sec == 0);
  CHECK_FAILS(clock_gettime(12345, &unit), EINVAL);
  struct timeval day;
  CHECK(gettimeofday(&day, NULL) == 0 && day.tv_sec > 1600000000);
  return Ok();
}
