// Shared memory with a name is a file of its own: shm_overview(7).
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "check.h"

int main(void) {
  char name[32];
  snprintf(name, sizeof(name), "/fidelity-%d", getpid());
  const int fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
  CHECK(fd >= 0 && ftruncate(fd, 4096) == 0);
  int* map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(map != MAP_FAILED);
  const pid_t child = fork();
  if (child == 0) {
    const int again = shm_open(name, O_RDWR, 0);
    const int value = 77;
    CHECK(again >= 0 && pwrite(again, &value, sizeof(value), 8) == 4);
    _exit(0);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  CHECK(map[2] == 77 && shm_unlink(name) == 0);
  return Ok();
}
