// A wait that nobody ends ends by the monotonic clock, not before:
// pthread_cond_timedwait(3), pthread_condattr_setclock(3).
#include <pthread.h>
#include <time.h>

#include "check.h"

int main(void) {
  pthread_condattr_t about;
  pthread_cond_t never;
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  CHECK(pthread_condattr_init(&about) == 0);
  CHECK(pthread_condattr_setclock(&about, CLOCK_MONOTONIC) == 0);
  CHECK(pthread_cond_init(&never, &about) == 0);
  struct timespec until;
  struct timespec now;
  CHECK(clock_gettime(CLOCK_MONOTONIC, &until) == 0);
  until.tv_sec += 1;
  CHECK(pthread_mutex_lock(&mutex) == 0);
  CHECK(pthread_cond_timedwait(&never, &mutex, &until) == ETIMEDOUT);
  CHECK(pthread_mutex_unlock(&mutex) == 0);
  CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
  CHECK(now.tv_sec > until.tv_sec ||
        (now.tv_sec == until.tv_sec && now.tv_nsec >= until.tv_nsec));
  return Ok();
}
