// A grandchild is given to the process that asked for orphans: prctl(2),
// PR_SET_CHILD_SUBREAPER.
#include <sys/prctl.h>
#include <sys/wait.h>

#include "check.h"

int main(void) {
  CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
  int ends[2];
  CHECK(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    if (fork() == 0) {
      char byte;
      CHECK(read(ends[0], &byte, 1) == 1);
      _exit(5);
    }
    _exit(4);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 4);
  CHECK(write(ends[1], "x", 1) == 1);
  const pid_t orphan = waitpid(-1, &status, 0);
  CHECK(orphan > 0 && orphan != child && WEXITSTATUS(status) == 5);
  return Ok();
}
