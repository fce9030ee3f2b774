// A child with the same table of descriptors closes one of its parent's, and
// without a signal it is waited for with __WCLONE: clone(2), CLONE_FILES.
#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>

#include "check.h"

static char stack[65536] __attribute__((aligned(16)));
static int Child(void* fd) { return close(*(int*)fd) == 0 ? 3 : 4; }

int main(void) {
  int fd = open("/dev/null", O_RDONLY);
  const pid_t child = clone(Child, stack + sizeof(stack), CLONE_FILES, &fd);
  int status;
  CHECK(child > 0);
  CHECK_FAILS(waitpid(child, &status, 0), ECHILD);
  CHECK(waitpid(child, &status, __WCLONE) == child);
  CHECK(WEXITSTATUS(status) == 3);
  CHECK_FAILS(fcntl(fd, F_GETFD), EBADF);
  return Ok();
}
