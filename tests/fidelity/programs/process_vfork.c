// The parent waits until its child has ended, and sees what it wrote: vfork(2).
#include <sys/wait.h>

#include "check.h"

static volatile int written = 0;

int main(void) {
  const pid_t child = vfork();
  if (child == 0) {
    written = 6;
    _exit(2);
  }
  int status;
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECK(WEXITSTATUS(status) == 2 && written == 6);
  return Ok();
}
