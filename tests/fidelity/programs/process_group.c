// Groups and sessions are begun, joined and told: setpgid(2), setsid(2).
#include <sys/wait.h>

#include "check.h"

int main(void) {
  const pid_t child = fork();
  if (child == 0) {
    CHECK(setsid() == getpid());
    CHECK(getsid(0) == getpid() && getpgrp() == getpid());
    CHECK_FAILS(setsid(), EPERM);
    CHECK_FAILS(setpgid(0, 0), EPERM);
    _exit(0);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  CHECK(setpgid(0, 0) == 0 || errno == EPERM);
  CHECK(getpgrp() == getpid());
  const pid_t other = fork();
  if (other == 0) {
    CHECK(getpgrp() == getppid());
    CHECK(setpgid(0, 0) == 0 && getpgrp() == getpid());
    _exit(0);
  }
  CHECK(waitpid(other, &status, 0) == other && status == 0);
  return Ok();
}
