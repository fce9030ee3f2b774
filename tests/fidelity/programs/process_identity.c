// A process tells its numbers, its parent and its users, and may become another
// user where it is root: credentials(7).
#include <sys/syscall.h>
#include <sys/wait.h>

#include "check.h"

int main(void) {
  CHECK(getpid() == gettid() && syscall(SYS_getpid) == getpid());
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) {
    CHECK(getppid() == parent && getpid() == gettid() && getpid() != parent);
    uid_t real;
    uid_t effective;
    uid_t saved;
    CHECK(getresuid(&real, &effective, &saved) == 0);
    CHECK(real == getuid() && effective == geteuid());
    if (effective == 0) {
      CHECK(setresgid(2000, 2000, 2000) == 0 && getegid() == 2000);
      CHECK(setresuid(1000, 1000, 1000) == 0 && geteuid() == 1000);
      CHECK_FAILS(setuid(0), EPERM);
    }
    _exit(0);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  return Ok();
}
