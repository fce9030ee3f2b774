// A sleep lasts at least as long as asked for, by a relative and by an absolute
// time; a wrong time is refused: clock_nanosleep(2).
#include <time.h>

#include "check.h"

static long Now(void) {
  struct timespec now;
  CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
  return now.tv_sec * 1000000000 + now.tv_nsec;
}

int main(void) {
  const long begin = Now();
  const struct timespec wait = {0, 3000000};
  CHECK(nanosleep(&wait, NULL) == 0);
  const long middle = Now();
  CHECK(middle - begin >= 3000000);
  const long end = middle + 4000000;
  const struct timespec until = {end / 1000000000, end % 1000000000};
  CHECK(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == 0);
  CHECK(Now() >= end);
  const struct timespec wrong = {0, 1000000000};
  CHECK_FAILS(nanosleep(&wrong, NULL), EINVAL);
  return Ok();
}
