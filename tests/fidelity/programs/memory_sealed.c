// A sealed file can neither shrink nor be written, and says so:
// memfd_create(2), fcntl(2), F_ADD_SEALS.
#include <fcntl.h>
#include <sys/mman.h>

#include "check.h"

int main(void) {
  const int fd = memfd_create("sealed", MFD_ALLOW_SEALING);
  CHECK(fd >= 0 && write(fd, "abc", 3) == 3);
  CHECK(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_WRITE) == 0);
  CHECK(fcntl(fd, F_GET_SEALS) == (F_SEAL_SHRINK | F_SEAL_WRITE));
  CHECK_FAILS(ftruncate(fd, 1), EPERM);
  CHECK_FAILS(pwrite(fd, "x", 1, 0), EPERM);
  CHECK_FAILS((long)mmap(NULL, 3, PROT_WRITE, MAP_SHARED, fd, 0), EPERM);
  char* map = mmap(NULL, 3, PROT_READ, MAP_PRIVATE, fd, 0);
  CHECK(map != MAP_FAILED && map[2] == 'c');
  return Ok();
}
