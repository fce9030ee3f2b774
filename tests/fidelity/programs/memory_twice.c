// One file mapped at two places in a row is one memory: a ring that needs no
// care at its end: mmap(2), memfd_create(2).
#include <string.h>
#include <sys/mman.h>

#include "check.h"

int main(void) {
  const int fd = memfd_create("ring", MFD_CLOEXEC);
  CHECK(fd >= 0 && ftruncate(fd, 4096) == 0);
  char* ring = mmap(NULL, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(ring != MAP_FAILED);
  for (int i = 0; i < 2; ++i) {
    CHECK(mmap(ring + 4096 * i, 4096, PROT_READ | PROT_WRITE,
               MAP_SHARED | MAP_FIXED, fd, 0) == ring + 4096 * i);
  }
  memcpy(ring + 4090, "0123456789", 10);
  CHECK(memcmp(ring, "6789", 4) == 0);
  ring[5] = 'z';
  CHECK(ring[4101] == 'z');
  return Ok();
}
