// A page's protection is taken away and given back with its bytes, in the
// middle of a mapping: mprotect(2).
#include <string.h>
#include <sys/mman.h>

#include "check.h"

int main(void) {
  char* map = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(map != MAP_FAILED);
  memset(map, 'x', 3 * 4096);
  CHECK(mprotect(map + 4096, 4096, PROT_NONE) == 0);
  int ends[2];
  CHECK(pipe(ends) == 0);
  CHECK_FAILS(write(ends[1], map + 4096, 1), EFAULT);
  CHECK(mprotect(map + 4096, 4096, PROT_READ | PROT_WRITE) == 0);
  CHECK(map[4096] == 'x' && map[8191] == 'x');
  map[4096] = 'y';
  CHECK(write(ends[1], map + 4095, 2) == 2);
  char text[2];
  CHECK(read(ends[0], text, 2) == 2 && text[0] == 'x' && text[1] == 'y');
  return Ok();
}
