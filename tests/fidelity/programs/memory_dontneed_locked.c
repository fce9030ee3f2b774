// Pages before a locked one are dropped although the call fails with EINVAL:
// madvise(2), mlock(2).
#include <sys/mman.h>

#include "check.h"

int main(void) {
  char* map = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(map != MAP_FAILED);
  map[0] = 'a';
  map[4096] = 'b';
  CHECK(mlock(map + 4096, 4096) == 0);
  CHECK_FAILS(madvise(map, 8192, MADV_DONTNEED), EINVAL);
  CHECK(map[0] == 0 && map[4096] == 'b');
  CHECK(munlock(map + 4096, 4096) == 0);
  CHECK(madvise(map, 8192, MADV_DONTNEED) == 0 && map[4096] == 0);
  return Ok();
}
