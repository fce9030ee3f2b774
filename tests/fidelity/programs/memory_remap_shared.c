// A shared mapping is seen twice when it is remapped from size 0: mremap(2).
#include <sys/mman.h>

#include "check.h"

int main(void) {
  char* one = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(one != MAP_FAILED);
  one[5000] = 'x';
  char* other = mremap(one, 0, 8192, MREMAP_MAYMOVE);
  CHECK(other != MAP_FAILED && other != one);
  CHECK(other[5000] == 'x');
  other[3] = 'y';
  CHECK(one[3] == 'y');
  return Ok();
}
