// Threads count under a mutex that gives its owner their priority:
// pthread_mutexattr_setprotocol(3), PTHREAD_PRIO_INHERIT.
#include <pthread.h>

#include "check.h"

static pthread_mutex_t mutex;
static int count = 0;
static void* Count(void* unused) {
  for (int i = 0; i < 50; ++i) {
    CHECK(pthread_mutex_lock(&mutex) == 0);
    ++count;
    CHECK(pthread_mutex_unlock(&mutex) == 0);
  }
  return unused;
}

int main(void) {
  pthread_mutexattr_t about;
  CHECK(pthread_mutexattr_init(&about) == 0);
  CHECK(pthread_mutexattr_setprotocol(&about, PTHREAD_PRIO_INHERIT) == 0);
  CHECK(pthread_mutex_init(&mutex, &about) == 0);
  pthread_t threads[3];
  for (int i = 0; i < 3; ++i) {
    CHECK(pthread_create(&threads[i], NULL, Count, NULL) == 0);
  }
  for (int i = 0; i < 3; ++i) {
    CHECK(pthread_join(threads[i], NULL) == 0);
  }
  CHECK(count == 150);
  return Ok();
}
