// The bytes go to the new place, the old one stays and reads as zeros:
// mremap(2), MREMAP_DONTUNMAP.
#include <sys/mman.h>

#include "check.h"

int main(void) {
  char* from = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(from != MAP_FAILED);
  from[7] = 'x';
  char* to = mremap(from, 4096, 4096, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
  CHECK(to != MAP_FAILED && to != from);
  CHECK(to[7] == 'x' && from[7] == 0);
  from[7] = 'y';
  CHECK(to[7] == 'x' && from[7] == 'y');
  return Ok();
}
