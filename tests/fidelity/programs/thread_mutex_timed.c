// A lock that another thread keeps is given up at the time that was said:
// pthread_mutex_timedlock(3).
#include <pthread.h>
#include <time.h>

#include "check.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void* Other(void* unused) {
  struct timespec until;
  struct timespec now;
  CHECK(clock_gettime(CLOCK_REALTIME, &until) == 0);
  until.tv_nsec += 20000000;
  until.tv_sec += until.tv_nsec / 1000000000;
  until.tv_nsec %= 1000000000;
  CHECK(pthread_mutex_timedlock(&mutex, &until) == ETIMEDOUT);
  CHECK(clock_gettime(CLOCK_REALTIME, &now) == 0);
  CHECK(now.tv_sec > until.tv_sec ||
        (now.tv_sec == until.tv_sec && now.tv_nsec >= until.tv_nsec));
  return unused;
}

int main(void) {
  pthread_t other;
  CHECK(pthread_mutex_lock(&mutex) == 0);
  CHECK(pthread_create(&other, NULL, Other, NULL) == 0);
  CHECK(pthread_join(other, NULL) == 0);
  return Ok();
}
