// How a child ended is told: its status, the signal that killed it, and the
// time that it took: wait4(2).
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "check.h"

int main(void) {
  int status;
  struct rusage usage;
  pid_t child = fork();
  if (child == 0) {
    _exit(300);
  }
  CHECK(wait4(child, &status, 0, &usage) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 300 % 256);
  CHECK(usage.ru_utime.tv_sec >= 0 && usage.ru_maxrss > 0);
  child = fork();
  if (child == 0) {
    for (;;) {
      pause();
    }
  }
  CHECK(waitpid(child, &status, WNOHANG) == 0);
  CHECK(kill(child, SIGTERM) == 0);
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
  CHECK_FAILS(waitpid(child, &status, 0), ECHILD);
  return Ok();
}
