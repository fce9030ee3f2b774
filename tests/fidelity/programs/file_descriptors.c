// The lowest number is taken, dup2 replaces, dup3 and F_DUPFD_CLOEXEC mark, and
// a range is closed: dup(2), fcntl(2), close_range(2).
#include <fcntl.h>

#include "check.h"

int main(void) {
  const int fd = open("/dev/null", O_WRONLY);
  CHECK(dup2(fd, 20) == 20 && dup2(fd, 20) == 20);
  CHECK(dup3(fd, 21, O_CLOEXEC) == 21);
  CHECK(fcntl(21, F_GETFD) == FD_CLOEXEC && fcntl(20, F_GETFD) == 0);
  CHECK_FAILS(dup3(fd, fd, 0), EINVAL);
  CHECK(fcntl(fd, F_DUPFD_CLOEXEC, 20) == 22);
  CHECK(close_range(20, 21, 0) == 0);
  CHECK_FAILS(fcntl(20, F_GETFD), EBADF);
  CHECK(fcntl(22, F_GETFD) == FD_CLOEXEC);
  CHECK(close(fd) == 0);
  CHECK(open("/dev/null", O_WRONLY) == fd);
  return Ok();
}
