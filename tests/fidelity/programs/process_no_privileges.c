// The promise to gain no privileges is kept and given on: prctl(2),
// PR_SET_NO_NEW_PRIVS, PR_SET_DUMPABLE.
#include <sys/prctl.h>
#include <sys/wait.h>

#include "check.h"

int main(void) {
  CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  CHECK_FAILS(prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0), EINVAL);
  CHECK(prctl(PR_SET_DUMPABLE, 0) == 0 && prctl(PR_GET_DUMPABLE) == 0);
  CHECK(prctl(PR_SET_DUMPABLE, 1) == 0 && prctl(PR_GET_DUMPABLE) == 1);
  const pid_t child = fork();
  if (child == 0) {
    _exit(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 1);
  return Ok();
}
