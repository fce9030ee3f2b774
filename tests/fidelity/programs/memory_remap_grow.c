// A private mapping grows, where it must elsewhere, with its bytes, and what is
// new is zero: mremap(2).
#include <sys/mman.h>

#include "check.h"

int main(void) {
  char* map = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(map != MAP_FAILED);
  map[0] = 'a';
  map[4095] = 'b';
  map[8192] = 'c';
  CHECK_FAILS((long)mremap(map, 4096, 8192, 0), ENOMEM);
  char* moved = mremap(map, 4096, 4 * 4096, MREMAP_MAYMOVE);
  CHECK(moved != MAP_FAILED && moved != map);
  CHECK(moved[0] == 'a' && moved[4095] == 'b' && moved[4096] == 0);
  moved[4 * 4096 - 1] = 'd';
  CHECK(map[8192] == 'c');
  CHECK(mremap(moved, 4 * 4096, 4096, 0) == moved && moved[0] == 'a');
  return Ok();
}
