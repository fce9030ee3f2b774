// A timer for a moment ends then and not before: timerfd_settime(2),
// TFD_TIMER_ABSTIME.
#include <stdint.h>
#include <sys/timerfd.h>
#include <time.h>

#include "check.h"

int main(void) {
  const int fd = timerfd_create(CLOCK_REALTIME, 0);
  struct itimerspec set = {{0, 0}, {0, 0}};
  CHECK(clock_gettime(CLOCK_REALTIME, &set.it_value) == 0);
  set.it_value.tv_sec += 1;
  CHECK(timerfd_settime(fd, TFD_TIMER_ABSTIME, &set, NULL) == 0);
  for (int call = 0; call < 200; ++call) {  // part of the time passes here
    CHECK(getppid() > 0);
  }
  uint64_t ends = 0;
  CHECK(read(fd, &ends, sizeof(ends)) == 8 && ends == 1);
  struct timespec now;
  CHECK(clock_gettime(CLOCK_REALTIME, &now) == 0);
  CHECK(now.tv_sec > set.it_value.tv_sec ||
        (now.tv_sec == set.it_value.tv_sec &&
         now.tv_nsec >= set.it_value.tv_nsec));
  return Ok();
}
