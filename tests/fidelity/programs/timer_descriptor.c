// A descriptor counts the ends of a timer, none of them early, and is ready
// then: timerfd_create(2).
#include <poll.h>
#include <stdint.h>
#include <sys/timerfd.h>
#include <time.h>

#include "check.h"

static long Now(void) {
  struct timespec now;
  CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
  return now.tv_sec * 1000000000 + now.tv_nsec;
}

int main(void) {
  const int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
  const struct itimerspec set = {{0, 0}, {0, 15000000}};
  uint64_t ends = 0;
  for (int i = 0; i < 20; ++i) {
    const long begin = Now();
    CHECK(timerfd_settime(fd, 0, &set, NULL) == 0);
    CHECK_FAILS(read(fd, &ends, sizeof(ends)), EAGAIN);
    for (int call = 0; call < 200; ++call) {  // part of the time passes here
      CHECK(getppid() > 0);
    }
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    CHECK(poll(&ready, 1, -1) == 1);
    CHECK(Now() - begin >= 15000000);
    CHECK(read(fd, &ends, sizeof(ends)) == 8 && ends == 1);
  }
  struct itimerspec now;
  CHECK(timerfd_gettime(fd, &now) == 0);
  CHECK(now.it_value.tv_sec == 0 && now.it_value.tv_nsec == 0);
  return Ok();
}
