// A recursive mutex counts, an error-checking one tells of a second lock and of
// a foreign unlock: pthread_mutexattr_settype(3).
#include <pthread.h>

#include "check.h"

static pthread_mutex_t Make(int kind) {
  pthread_mutexattr_t about;
  pthread_mutex_t mutex;
  CHECK(pthread_mutexattr_init(&about) == 0);
  CHECK(pthread_mutexattr_settype(&about, kind) == 0);
  CHECK(pthread_mutex_init(&mutex, &about) == 0);
  return mutex;
}

static pthread_mutex_t recursive;
static pthread_mutex_t checking;
static void* Other(void* unused) {
  CHECK(pthread_mutex_trylock(&recursive) == EBUSY);
  CHECK(pthread_mutex_unlock(&checking) == EPERM);
  return unused;
}

int main(void) {
  recursive = Make(PTHREAD_MUTEX_RECURSIVE);
  checking = Make(PTHREAD_MUTEX_ERRORCHECK);
  CHECK(pthread_mutex_lock(&recursive) == 0);
  CHECK(pthread_mutex_lock(&recursive) == 0);
  CHECK(pthread_mutex_unlock(&recursive) == 0);
  CHECK(pthread_mutex_lock(&checking) == 0);
  CHECK(pthread_mutex_lock(&checking) == EDEADLK);
  pthread_t other;
  CHECK(pthread_create(&other, NULL, Other, NULL) == 0);
  CHECK(pthread_join(other, NULL) == 0);
  CHECK(pthread_mutex_unlock(&recursive) == 0);
  CHECK(pthread_mutex_unlock(&recursive) == EPERM);
  return Ok();
}
