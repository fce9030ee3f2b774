// A mapping is moved over another one, which is gone, with its bytes:
// mremap(2), MREMAP_FIXED.
#include <sys/mman.h>

#include "check.h"

static char* Map(char first) {
  char* map = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(map != MAP_FAILED);
  map[0] = first;
  map[4096] = (char)(first + 1);
  return map;
}

int main(void) {
  char* from = Map('a');
  char* to = Map('p');
  CHECK(mremap(from, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to);
  CHECK(to[0] == 'a' && to[4096] == 'q' && from[4096] == 'b');
  unsigned char resident;
  CHECK_FAILS(mincore(from, 4096, &resident), ENOMEM);
  return Ok();
}
