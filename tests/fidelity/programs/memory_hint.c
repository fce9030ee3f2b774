// MAP_FIXED_NOREPLACE takes a free place and refuses a taken one, a hint is
// taken where it is free: mmap(2).
#include <sys/mman.h>

#include "check.h"

int main(void) {
  char* map = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(map != MAP_FAILED);
  CHECK(munmap(map + 4096, 4096) == 0);
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
  CHECK_FAILS((long)mmap(map, 4096, PROT_READ, flags, -1, 0), EEXIST);
  CHECK(mmap(map + 4096, 4096, PROT_READ, flags, -1, 0) == map + 4096);
  CHECK(munmap(map, 8192) == 0);
  CHECK(mmap(map, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == map);
  CHECK_FAILS(
      (long)mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
      EINVAL);
  return Ok();
}
