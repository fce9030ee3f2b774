// Exactly one of those that wait is the serial thread, and nobody is early:
// pthread_barrier_wait(3).
#include <pthread.h>

#include "check.h"

static pthread_barrier_t barrier;
static int arrived = 0;
static int serial = 0;

static void* Arrive(void* unused) {
  __atomic_fetch_add(&arrived, 1, __ATOMIC_SEQ_CST);
  const int result = pthread_barrier_wait(&barrier);
  CHECK(__atomic_load_n(&arrived, __ATOMIC_SEQ_CST) == 3);
  if (result == PTHREAD_BARRIER_SERIAL_THREAD) {
    __atomic_fetch_add(&serial, 1, __ATOMIC_SEQ_CST);
  }
  return unused;
}

int main(void) {
  pthread_t threads[3];
  CHECK(pthread_barrier_init(&barrier, NULL, 3) == 0);
  for (int i = 0; i < 3; ++i) {
    CHECK(pthread_create(&threads[i], NULL, Arrive, NULL) == 0);
  }
  for (int i = 0; i < 3; ++i) {
    CHECK(pthread_join(threads[i], NULL) == 0);
  }
  CHECK(serial == 1);
  return Ok();
}
