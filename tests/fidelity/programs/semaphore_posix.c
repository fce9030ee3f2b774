// A semaphore counts, a wait for nothing ends in time, and a named one is found
// by its name: sem_overview(7).
#include <fcntl.h>
#include <semaphore.h>
#include <time.h>

#include "check.h"

int main(void) {
  sem_t own;
  int value;
  CHECK(sem_init(&own, 0, 2) == 0);
  CHECK(sem_wait(&own) == 0 && sem_trywait(&own) == 0);
  CHECK_FAILS(sem_trywait(&own), EAGAIN);
  struct timespec now;
  CHECK(clock_gettime(CLOCK_REALTIME, &now) == 0);
  CHECK_FAILS(sem_timedwait(&own, &now), ETIMEDOUT);
  CHECK(sem_post(&own) == 0 && sem_getvalue(&own, &value) == 0 && value == 1);
  char name[32];
  snprintf(name, sizeof(name), "/fidelity-%d", getpid());
  sem_t* named = sem_open(name, O_CREAT | O_EXCL, 0600, 1);
  CHECK(named != SEM_FAILED);
  CHECK(sem_open(name, 0) == named);
  CHECK(sem_unlink(name) == 0);
  CHECK(sem_open(name, 0) == SEM_FAILED && errno == ENOENT);
  return Ok();
}
