// One who waits for a robust mutex is woken by its owner's death, and told of
// it: pthread_mutexattr_setrobust(3).
#include <pthread.h>

#include "check.h"

static pthread_mutex_t mutex;
static pthread_barrier_t held;
static void* Die(void* unused) {
  CHECK(pthread_mutex_lock(&mutex) == 0);
  pthread_barrier_wait(&held);
  usleep(20000);
  return unused;
}

int main(void) {
  pthread_mutexattr_t about;
  CHECK(pthread_mutexattr_init(&about) == 0);
  CHECK(pthread_mutexattr_setrobust(&about, PTHREAD_MUTEX_ROBUST) == 0);
  CHECK(pthread_mutex_init(&mutex, &about) == 0);
  CHECK(pthread_barrier_init(&held, NULL, 2) == 0);
  pthread_t owner;
  CHECK(pthread_create(&owner, NULL, Die, NULL) == 0);
  pthread_barrier_wait(&held);
  CHECK(pthread_mutex_lock(&mutex) == EOWNERDEAD);
  CHECK(pthread_mutex_consistent(&mutex) == 0);
  CHECK(pthread_mutex_unlock(&mutex) == 0);
  CHECK(pthread_join(owner, NULL) == 0);
  return Ok();
}
