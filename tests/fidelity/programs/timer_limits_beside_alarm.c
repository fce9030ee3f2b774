// An alarm is set, and waits end by their own time limits, none of them early:
// clock_nanosleep(2), sem_clockwait(3), pthread_cond_clockwait(3).
#include <pthread.h>
#include <semaphore.h>
#include <time.h>

#include "check.h"

static const long kWaitNs = 20000000;

static struct timespec After(clockid_t clock, long ns) {
  struct timespec at;
  CHECK(clock_gettime(clock, &at) == 0);
  at.tv_nsec += ns;
  at.tv_sec += at.tv_nsec / 1000000000;
  at.tv_nsec %= 1000000000;
  return at;
}

static int IsOver(clockid_t clock, struct timespec at) {
  const struct timespec now = After(clock, 0);
  return now.tv_sec > at.tv_sec ||
         (now.tv_sec == at.tv_sec && now.tv_nsec >= at.tv_nsec);
}

int main(void) {
  const clockid_t clocks[] = {CLOCK_MONOTONIC, CLOCK_REALTIME};
  const struct timespec wait = {0, kWaitNs};
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
  sem_t none;
  CHECK(alarm(1000) == 0);
  CHECK(sem_init(&none, 0, 0) == 0 && pthread_mutex_lock(&mutex) == 0);
  for (int i = 0; i < 2; ++i) {
    const clockid_t clock = clocks[i];
    struct timespec at = After(clock, kWaitNs);
    CHECK(clock_nanosleep(clock, 0, &wait, NULL) == 0 && IsOver(clock, at));
    at = After(clock, kWaitNs);
    CHECK(clock_nanosleep(clock, TIMER_ABSTIME, &at, NULL) == 0);
    CHECK(IsOver(clock, at));
    at = After(clock, kWaitNs);
    CHECK_FAILS(sem_clockwait(&none, clock, &at), ETIMEDOUT);
    CHECK(IsOver(clock, at));
    at = After(clock, kWaitNs);
    CHECK(pthread_cond_clockwait(&condition, &mutex, clock, &at) == ETIMEDOUT);
    CHECK(IsOver(clock, at));
    at = After(clock, 0);
    --at.tv_sec;
    CHECK(clock_nanosleep(clock, TIMER_ABSTIME, &at, NULL) == 0);
    CHECK_FAILS(sem_clockwait(&none, clock, &at), ETIMEDOUT);
  }
  CHECK(alarm(0) > 0);
  return Ok();
}
