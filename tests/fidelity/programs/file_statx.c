// Size, kind and permissions under the mask, by name and by descriptor:
// statx(2), chmod(2), umask(2).
#include <fcntl.h>
#include <sys/stat.h>

#include "check.h"

int main(void) {
  umask(027);
  const int fd = open("file", O_RDWR | O_CREAT, 0666);
  CHECK(write(fd, "12345", 5) == 5);
  struct statx about;
  CHECK(statx(AT_FDCWD, "file", 0, STATX_BASIC_STATS, &about) == 0);
  CHECK(about.stx_size == 5 && S_ISREG(about.stx_mode));
  CHECK((about.stx_mode & 07777) == 0640);
  CHECK(fchmod(fd, 0400) == 0);
  CHECK(statx(fd, "", AT_EMPTY_PATH, STATX_MODE, &about) == 0);
  CHECK((about.stx_mode & 07777) == 0400);
  CHECK_FAILS(statx(AT_FDCWD, "none", 0, STATX_MODE, &about), ENOENT);
  return Ok();
}
