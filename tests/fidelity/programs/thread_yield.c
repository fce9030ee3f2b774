// Threads that only yield to one another come forward: sched_yield(2).
#include <pthread.h>
#include <sched.h>

#include "check.h"

static int turn = 0;
static void* Other(void* unused) {
  for (int i = 0; i < 10; ++i) {
    while (__atomic_load_n(&turn, __ATOMIC_SEQ_CST) % 2 == 0) {
      CHECK(sched_yield() == 0);
    }
    __atomic_fetch_add(&turn, 1, __ATOMIC_SEQ_CST);
  }
  return unused;
}

int main(void) {
  pthread_t other;
  CHECK(pthread_create(&other, NULL, Other, NULL) == 0);
  for (int i = 0; i < 10; ++i) {
    while (__atomic_load_n(&turn, __ATOMIC_SEQ_CST) % 2 == 1) {
      CHECK(sched_yield() == 0);
    }
    __atomic_fetch_add(&turn, 1, __ATOMIC_SEQ_CST);
  }
  CHECK(pthread_join(other, NULL) == 0 && turn == 20);
  return Ok();
}
