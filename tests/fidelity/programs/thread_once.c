// The routine has run, once, when any of the calls returns: pthread_once(3).
#include <pthread.h>

#include "check.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int runs = 0;
static void Begin(void) { ++runs; }
static void* Use(void* unused) {
  CHECK(pthread_once(&once, Begin) == 0);
  CHECK(runs == 1);
  return unused;
}

int main(void) {
  pthread_t threads[3];
  for (int i = 0; i < 3; ++i) {
    CHECK(pthread_create(&threads[i], NULL, Use, NULL) == 0);
  }
  for (int i = 0; i < 3; ++i) {
    CHECK(pthread_join(threads[i], NULL) == 0);
  }
  return Ok();
}
