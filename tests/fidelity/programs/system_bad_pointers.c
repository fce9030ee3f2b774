// A pointer to nothing is refused by the kernel, the process goes on: EFAULT in
// read(2), stat(2), pipe(2).
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "check.h"

int main(void) {
  const int fd = open("/dev/zero", O_RDONLY);
  void* volatile nothing = (void*)8;
  void* const bad = nothing;
  CHECK_FAILS(read(fd, bad, 4), EFAULT);
  CHECK_FAILS(syscall(SYS_stat, bad, bad), EFAULT);
  CHECK_FAILS(syscall(SYS_pipe, bad), EFAULT);
  CHECK_FAILS(syscall(SYS_open, bad, O_RDONLY), EFAULT);
  CHECK_FAILS(syscall(SYS_nanosleep, bad, NULL), EFAULT);
  CHECK_FAILS(syscall(SYS_getcwd, bad, 100), EFAULT);
  return Ok();
}
