// Each thread has its value, and its destructor runs at its end, again where it
// sets one: pthread_key_create(3).
#include <pthread.h>
#include <stdint.h>

#include "check.h"

static pthread_key_t key;
static __thread int own = 3;
static int destroyed = 0;
static void Destroy(void* value) {
  ++destroyed;
  if ((intptr_t)value > 1) {
    CHECK(pthread_setspecific(key, (void*)((intptr_t)value - 1)) == 0);
  }
}

static void* Other(void* unused) {
  CHECK(pthread_getspecific(key) == NULL && own == 3);
  own = 4;
  CHECK(pthread_setspecific(key, (void*)3) == 0);
  return unused;
}

int main(void) {
  pthread_t other;
  CHECK(pthread_key_create(&key, Destroy) == 0);
  CHECK(pthread_setspecific(key, (void*)9) == 0);
  CHECK(pthread_create(&other, NULL, Other, NULL) == 0);
  CHECK(pthread_join(other, NULL) == 0);
  CHECK(destroyed == 3 && own == 3);
  CHECK(pthread_getspecific(key) == (void*)9);
  return Ok();
}
