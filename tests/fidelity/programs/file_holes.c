// Space without data is a hole that lseek finds; a part may be punched out:
// fallocate(2), lseek(2).
#include <fcntl.h>

#include "check.h"

int main(void) {
  const int fd = open("file", O_RDWR | O_CREAT, 0600);
  char page[4096];
  for (size_t i = 0; i < sizeof(page); ++i) {
    page[i] = 'x';
  }
  CHECK(pwrite(fd, page, sizeof(page), 65536) == sizeof(page));
  CHECK(lseek(fd, 0, SEEK_DATA) <= 65536);
  CHECK(lseek(fd, 65536, SEEK_HOLE) == 65536 + 4096);
  CHECK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 65536,
                  4096) == 0);
  CHECK(pread(fd, page, 2, 65536) == 2 && page[0] == 0);
  CHECK_FAILS(lseek(fd, 1 << 20, SEEK_DATA), ENXIO);
  return Ok();
}
