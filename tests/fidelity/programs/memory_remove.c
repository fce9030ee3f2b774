// The pages and the part of the file behind them are freed: madvise(2),
// MADV_REMOVE.
#include <sys/mman.h>

#include "check.h"

int main(void) {
  const int fd = memfd_create("file", 0);
  CHECK(fd >= 0 && ftruncate(fd, 8192) == 0);
  char* map = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(map != MAP_FAILED);
  map[0] = 'a';
  map[4096] = 'b';
  CHECK(madvise(map, 4096, MADV_REMOVE) == 0);
  char byte = 'x';
  CHECK(map[0] == 0 && map[4096] == 'b');
  CHECK(pread(fd, &byte, 1, 0) == 1 && byte == 0);
  return Ok();
}
