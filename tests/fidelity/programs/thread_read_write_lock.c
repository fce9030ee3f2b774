// Readers share, a writer excludes: pthread_rwlock_rdlock(3).
#include <pthread.h>

#include "check.h"

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static void* WhileRead(void* unused) {
  CHECK(pthread_rwlock_trywrlock(&lock) == EBUSY);
  CHECK(pthread_rwlock_tryrdlock(&lock) == 0);
  CHECK(pthread_rwlock_unlock(&lock) == 0);
  return unused;
}

static void* WhileWritten(void* unused) {
  CHECK(pthread_rwlock_tryrdlock(&lock) == EBUSY);
  return unused;
}

static void In(void* (*what)(void*)) {
  pthread_t other;
  CHECK(pthread_create(&other, NULL, what, NULL) == 0);
  CHECK(pthread_join(other, NULL) == 0);
  CHECK(pthread_rwlock_unlock(&lock) == 0);
}

int main(void) {
  CHECK(pthread_rwlock_rdlock(&lock) == 0);
  In(WhileRead);
  CHECK(pthread_rwlock_wrlock(&lock) == 0);
  In(WhileWritten);
  return Ok();
}
