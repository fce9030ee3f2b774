// A detached thread cannot be joined and tells its end by other means:
// pthread_detach(3).
#include <pthread.h>
#include <semaphore.h>

#include "check.h"

static sem_t go;
static sem_t done;
static void* Run(void* unused) {
  CHECK(sem_wait(&go) == 0 && sem_post(&done) == 0);
  return unused;
}

int main(void) {
  pthread_t thread;
  CHECK(sem_init(&go, 0, 0) == 0 && sem_init(&done, 0, 0) == 0);
  CHECK(pthread_create(&thread, NULL, Run, NULL) == 0);
  CHECK(pthread_detach(thread) == 0);
  CHECK(pthread_join(thread, NULL) == EINVAL);
  CHECK(sem_post(&go) == 0 && sem_wait(&done) == 0);
  return Ok();
}
