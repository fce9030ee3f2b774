// A child sees the lock of its parent's, which a fork does not give on, and the
// range is as asked for: fcntl(2), F_SETLK, F_GETLK.
#include <fcntl.h>
#include <sys/wait.h>

#include "check.h"

int main(void) {
  const int fd = open("file", O_RDWR | O_CREAT, 0600);
  struct flock lock = {
      .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 4, .l_len = 8};
  CHECK(fcntl(fd, F_SETLK, &lock) == 0);
  const pid_t child = fork();
  if (child == 0) {
    struct flock seen = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    CHECK(fcntl(fd, F_GETLK, &seen) == 0);
    CHECK(seen.l_type == F_WRLCK && seen.l_pid == getppid());
    CHECK(seen.l_start == 4 && seen.l_len == 8);
    CHECK_FAILS(fcntl(fd, F_SETLK, &lock), EAGAIN);
    lock.l_start = 12;
    CHECK(fcntl(fd, F_SETLK, &lock) == 0);
    _exit(0);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  return Ok();
}
