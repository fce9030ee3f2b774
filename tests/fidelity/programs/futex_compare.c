// A wait for another value than the word's fails at once, a wake of nobody
// wakes nobody, a time limit ends a wait: futex(2).
#include <linux/futex.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>

#include "check.h"

int main(void) {
  static uint32_t word = 5;
  CHECK_FAILS(syscall(SYS_futex, &word, FUTEX_WAIT, 4, NULL, NULL, 0), EAGAIN);
  CHECK(syscall(SYS_futex, &word, FUTEX_WAKE, 1, NULL, NULL, 0) == 0);
  const struct timespec limit = {0, 2000000};
  CHECK_FAILS(syscall(SYS_futex, &word, FUTEX_WAIT, 5, &limit, NULL, 0),
              ETIMEDOUT);
  CHECK_FAILS(
      syscall(SYS_futex, (char*)&word + 1, FUTEX_WAIT, 5, NULL, NULL, 0),
      EINVAL);
  return Ok();
}
