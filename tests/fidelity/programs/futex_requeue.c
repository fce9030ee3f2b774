// Waiters are moved from one word to another without being woken: futex(2),
// FUTEX_CMP_REQUEUE.
#include <linux/futex.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "check.h"

static uint32_t from = 0;
static uint32_t to = 0;

static void* Wait(void* unused) {
  CHECK(syscall(SYS_futex, &from, FUTEX_WAIT, 0, NULL, NULL, 0) == 0);
  return unused;
}

int main(void) {
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, Wait, NULL) == 0);
  CHECK_FAILS(syscall(SYS_futex, &from, FUTEX_CMP_REQUEUE, 0, 8L, &to, 1),
              EAGAIN);
  while (syscall(SYS_futex, &from, FUTEX_CMP_REQUEUE, 0, 8L, &to, 0) == 0) {
    usleep(1000);
  }
  CHECK(syscall(SYS_futex, &from, FUTEX_WAKE, 8, NULL, NULL, 0) == 0);
  CHECK(syscall(SYS_futex, &to, FUTEX_WAKE, 8, NULL, NULL, 0) == 1);
  CHECK(pthread_join(thread, NULL) == 0);
  return Ok();
}
