// A second word is changed, and its waiters are woken if its old value was as
// asked: futex(2), FUTEX_WAKE_OP.
#include <linux/futex.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "check.h"

int main(void) {
  static uint32_t one = 0;
  static uint32_t two = 5;
  const int add = FUTEX_OP(FUTEX_OP_ADD, 3, FUTEX_OP_CMP_EQ, 5);
  CHECK(syscall(SYS_futex, &one, FUTEX_WAKE_OP, 1, 1L, &two, add) == 0);
  CHECK(two == 8);
  const int set = FUTEX_OP(FUTEX_OP_SET, 1, FUTEX_OP_CMP_GT, 0);
  CHECK(syscall(SYS_futex, &one, FUTEX_WAKE_OP, 1, 1L, &two, set) == 0);
  CHECK(two == 1);
  return Ok();
}
