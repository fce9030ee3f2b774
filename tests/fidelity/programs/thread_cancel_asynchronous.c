// A thread that only computes is cancelled where it is:
// pthread_setcanceltype(3).
#include <pthread.h>
#include <semaphore.h>

#include "check.h"

static sem_t ready;
static void* Spin(void* unused) {
  int before;
  CHECK(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &before) == 0);
  CHECK(before == PTHREAD_CANCEL_DEFERRED);
  CHECK(sem_post(&ready) == 0);
  for (volatile unsigned i = 0;; ++i) {
  }
  return unused;
}

int main(void) {
  pthread_t thread;
  void* result = NULL;
  CHECK(sem_init(&ready, 0, 0) == 0);
  CHECK(pthread_create(&thread, NULL, Spin, NULL) == 0);
  CHECK(sem_wait(&ready) == 0);
  CHECK(pthread_cancel(thread) == 0);
  CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
  return Ok();
}
