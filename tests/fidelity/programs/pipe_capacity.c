// A pipe takes what it has room for and not more, its size can be set, and
// FIONREAD tells what is in it: pipe(7), fcntl(2).
#include <fcntl.h>
#include <sys/ioctl.h>

#include "check.h"

int main(void) {
  int ends[2];
  CHECK(pipe2(ends, O_NONBLOCK | O_CLOEXEC) == 0);
  CHECK(fcntl(ends[1], F_SETPIPE_SZ, 4096) == 4096);
  static char bytes[8192];
  CHECK(write(ends[1], bytes, sizeof(bytes)) == 4096);
  CHECK_FAILS(write(ends[1], bytes, 1), EAGAIN);
  int held = 0;
  CHECK(ioctl(ends[0], FIONREAD, &held) == 0 && held == 4096);
  CHECK(read(ends[0], bytes, 4096) == 4096);
  CHECK_FAILS(read(ends[0], bytes, 1), EAGAIN);
  return Ok();
}
