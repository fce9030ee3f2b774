// A wake reaches only waiters that have one of its bits: futex(2),
// FUTEX_WAIT_BITSET.
#include <linux/futex.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "check.h"

static uint32_t word = 0;
static uint32_t woken[2] = {0, 0};

static long Futex(int operation, uint32_t value, uint32_t bits) {
  return syscall(SYS_futex, &word, operation | FUTEX_PRIVATE_FLAG, value, NULL,
                 NULL, bits);
}

static void* Wait(void* number) {
  const intptr_t i = (intptr_t)number;
  CHECK(Futex(FUTEX_WAIT_BITSET, 0, 1u << i) == 0);
  __atomic_store_n(&woken[i], 1, __ATOMIC_SEQ_CST);
  return NULL;
}

int main(void) {
  pthread_t threads[2];
  for (intptr_t i = 0; i < 2; ++i) {
    CHECK(pthread_create(&threads[i], NULL, Wait, (void*)i) == 0);
  }
  CHECK(usleep(100000) == 0);  // both wait by then, as a rule
  CHECK(Futex(FUTEX_WAKE_BITSET, 8, 4) == 0);
  while (Futex(FUTEX_WAKE_BITSET, 8, 2) == 0) {
    usleep(1000);
  }
  CHECK(pthread_join(threads[1], NULL) == 0);
  CHECK(__atomic_load_n(&woken[0], __ATOMIC_SEQ_CST) == 0);
  while (Futex(FUTEX_WAKE_BITSET, 8, 1) == 0) {
    usleep(1000);
  }
  CHECK(pthread_join(threads[0], NULL) == 0);
  return Ok();
}
