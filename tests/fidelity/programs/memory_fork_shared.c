// What a child writes to shared memory its parent sees, to private memory not:
// mmap(2), fork(2).
#include <sys/mman.h>
#include <sys/wait.h>

#include "check.h"

static int own = 1;

int main(void) {
  int* shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(shared != MAP_FAILED);
  const pid_t child = fork();
  if (child == 0) {
    shared[0] = 42;
    own = 2;
    _exit(own);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 2);
  CHECK(shared[0] == 42 && own == 1);
  return Ok();
}
