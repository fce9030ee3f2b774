// In a child that allows itself four calls alone any other one is its end:
// seccomp(2), strict mode.
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "check.h"

int main(void) {
  CHECK(prctl(PR_GET_SECCOMP) == 0);
  const pid_t child = fork();
  if (child == 0) {
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0);
    syscall(SYS_getpid);
    syscall(SYS_exit, 0);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  return Ok();
}
