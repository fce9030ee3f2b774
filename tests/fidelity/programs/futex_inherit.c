// The kernel takes and releases the word with the thread's number: futex(2),
// FUTEX_LOCK_PI, FUTEX_TRYLOCK_PI, FUTEX_UNLOCK_PI.
#include <linux/futex.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "check.h"

static uint32_t word = 0;
static long Futex(int operation) {
  return syscall(SYS_futex, &word, operation, 0, NULL, NULL, 0);
}

static void* Other(void* unused) {
  CHECK_FAILS(Futex(FUTEX_TRYLOCK_PI), EAGAIN);
  CHECK_FAILS(Futex(FUTEX_UNLOCK_PI), EPERM);
  return unused;
}

int main(void) {
  CHECK(Futex(FUTEX_LOCK_PI) == 0);
  CHECK((word & FUTEX_TID_MASK) == (uint32_t)gettid());
  CHECK_FAILS(Futex(FUTEX_LOCK_PI), EDEADLK);
  pthread_t other;
  CHECK(pthread_create(&other, NULL, Other, NULL) == 0);
  CHECK(pthread_join(other, NULL) == 0);
  CHECK(Futex(FUTEX_UNLOCK_PI) == 0 && word == 0);
  CHECK(Futex(FUTEX_TRYLOCK_PI) == 0 && Futex(FUTEX_UNLOCK_PI) == 0);
  return Ok();
}
