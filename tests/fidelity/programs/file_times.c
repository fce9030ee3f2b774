// A file's times are those that were set, one may be left out: utimensat(2).
#include <fcntl.h>
#include <sys/stat.h>

#include "check.h"

int main(void) {
  CHECK(mknod("file", S_IFREG | 0600, 0) == 0);
  const struct timespec both[2] = {{1000, 5}, {2000, 7}};
  CHECK(utimensat(AT_FDCWD, "file", both, 0) == 0);
  const struct timespec one[2] = {{0, UTIME_OMIT}, {3000, 9}};
  CHECK(utimensat(AT_FDCWD, "file", one, 0) == 0);
  struct stat about;
  CHECK(stat("file", &about) == 0);
  CHECK(about.st_atim.tv_sec == 1000 && about.st_atim.tv_nsec == 5);
  CHECK(about.st_mtim.tv_sec == 3000 && about.st_mtim.tv_nsec == 9);
  return Ok();
}
