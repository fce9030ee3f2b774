// Pages that were touched are resident, and an unmapped one is refused:
// mincore(2).
#include <sys/mman.h>

#include "check.h"

int main(void) {
  char* map = mmap(NULL, 4 * 4096, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(map != MAP_FAILED);
  map[0] = 1;
  map[8192] = 1;
  unsigned char resident[4] = {0};
  CHECK(mincore(map, 3 * 4096, resident) == 0);
  CHECK((resident[0] & 1) == 1 && (resident[2] & 1) == 1);
  CHECK(munmap(map + 3 * 4096, 4096) == 0);
  CHECK_FAILS(mincore(map, 4 * 4096, resident), ENOMEM);
  return Ok();
}
