// What is beyond a shorter length is gone, and a longer one has zeros:
// ftruncate(2).
#include <fcntl.h>
#include <sys/stat.h>

#include "check.h"

int main(void) {
  const int fd = open("file", O_RDWR | O_CREAT, 0600);
  CHECK(write(fd, "abcdef", 6) == 6);
  CHECK(ftruncate(fd, 2) == 0);
  CHECK(ftruncate(fd, 5) == 0);
  char text[8] = "xxxxxxx";
  CHECK(pread(fd, text, sizeof(text), 0) == 5);
  CHECK(text[1] == 'b' && text[2] == 0 && text[4] == 0 && text[5] == 'x');
  struct stat about;
  CHECK(fstat(fd, &about) == 0 && about.st_size == 5);
  CHECK_FAILS(ftruncate(fd, -1), EINVAL);
  return Ok();
}
