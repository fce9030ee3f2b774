// Some TiB of address space are reserved without memory, and a page in the
// middle is used: mmap(2), MAP_NORESERVE.
#include <sys/mman.h>

#include "check.h"

int main(void) {
  const size_t size = 4ul << 40;
  char* map = mmap(NULL, size, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(map != MAP_FAILED);
  char* middle = map + size / 2;
  CHECK(mprotect(middle, 4096, PROT_READ | PROT_WRITE) == 0);
  middle[0] = 'x';
  CHECK(middle[0] == 'x' && middle[4095] == 0);
  CHECK(munmap(map, size) == 0);
  return Ok();
}
