// A wait for no bit is refused at once, and so is a wake: futex(2),
// FUTEX_WAIT_BITSET, FUTEX_WAKE_BITSET.
#include <linux/futex.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "check.h"

int main(void) {
  static uint32_t word = 0;
  CHECK_FAILS(syscall(SYS_futex, &word, FUTEX_WAIT_BITSET, 0, NULL, NULL, 0),
              EINVAL);
  CHECK_FAILS(syscall(SYS_futex, &word, FUTEX_WAKE_BITSET, 1, NULL, NULL, 0),
              EINVAL);
  return Ok();
}
