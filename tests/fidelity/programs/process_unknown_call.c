// A number that no call has is answered with ENOSYS: syscall(2).
#include <sys/syscall.h>

#include "check.h"

int main(void) {
  CHECK_FAILS(syscall(-1L), ENOSYS);
  CHECK_FAILS(syscall(-10L), ENOSYS);
  CHECK_FAILS(syscall(9999L), ENOSYS);
  CHECK(syscall(SYS_getpid) == getpid());
  return Ok();
}
