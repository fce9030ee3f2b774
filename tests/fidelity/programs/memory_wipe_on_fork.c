// A child finds marked pages empty, or not at all: madvise(2), MADV_WIPEONFORK,
// MADV_DONTFORK.
#include <sys/mman.h>
#include <sys/wait.h>

#include "check.h"

int main(void) {
  char* map = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(map != MAP_FAILED);
  map[0] = 'a';
  map[4096] = 'b';
  CHECK(madvise(map, 4096, MADV_WIPEONFORK) == 0);
  CHECK(madvise(map + 4096, 4096, MADV_DONTFORK) == 0);
  const pid_t child = fork();
  if (child == 0) {
    CHECK(map[0] == 0);
    unsigned char resident;
    CHECK_FAILS(mincore(map + 4096, 4096, &resident), ENOMEM);
    _exit(0);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  CHECK(map[0] == 'a' && map[4096] == 'b');
  return Ok();
}
