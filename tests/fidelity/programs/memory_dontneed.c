// Private pages that are not needed read as zeros, a file's as in the file:
// madvise(2), MADV_DONTNEED.
#include <fcntl.h>
#include <sys/mman.h>

#include "check.h"

int main(void) {
  char* map = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(map != MAP_FAILED);
  map[0] = 'a';
  map[4096] = 'b';
  CHECK(madvise(map, 4096, MADV_DONTNEED) == 0);
  CHECK(map[0] == 0 && map[4096] == 'b');
  const int fd = open("file", O_RDWR | O_CREAT, 0600);
  CHECK(write(fd, "x", 1) == 1);
  char* file = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
  CHECK(file != MAP_FAILED);
  file[0] = 'y';
  CHECK(madvise(file, 4096, MADV_DONTNEED) == 0);
  CHECK(file[0] == 'x');
  CHECK_FAILS(madvise(map + 1, 4096, MADV_DONTNEED), EINVAL);
  return Ok();
}
