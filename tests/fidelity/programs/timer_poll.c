// A wait for nothing lasts as long as it was told, in poll and in select:
// poll(2), pselect(2).
#include <poll.h>
#include <sys/select.h>
#include <time.h>

#include "check.h"

static long Now(void) {
  struct timespec now;
  CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
  return now.tv_sec * 1000000000 + now.tv_nsec;
}

int main(void) {
  int ends[2];
  CHECK(pipe(ends) == 0);
  struct pollfd none = {.fd = ends[0], .events = POLLIN};
  const long begin = Now();
  CHECK(poll(&none, 1, 5) == 0 && none.revents == 0);
  const long middle = Now();
  CHECK(middle - begin >= 5000000);
  fd_set set;
  FD_ZERO(&set);
  FD_SET(ends[0], &set);
  struct timeval limit = {0, 5000};
  CHECK(select(ends[0] + 1, &set, NULL, NULL, &limit) == 0);
  CHECK(Now() - middle >= 5000000 && !FD_ISSET(ends[0], &set));
  CHECK(limit.tv_sec == 0 && limit.tv_usec == 0);
  return Ok();
}
