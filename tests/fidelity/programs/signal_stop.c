// A child is stopped and continued, and the parent is told each: kill(2),
// waitpid(2) with WUNTRACED and WCONTINUED.
#include <signal.h>
#include <sys/wait.h>

#include "check.h"

int main(void) {
  int go[2];
  CHECK(pipe(go) == 0);
  const pid_t child = fork();
  if (child == 0) {
    char byte;
    raise(SIGSTOP);
    CHECK(read(go[0], &byte, 1) == 1);
    _exit(3);
  }
  int status;
  CHECK(waitpid(child, &status, WUNTRACED) == child);
  CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
  CHECK(kill(child, SIGCONT) == 0);
  CHECK(waitpid(child, &status, WCONTINUED) == child && WIFCONTINUED(status));
  CHECK(write(go[1], "x", 1) == 1);
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 3);
  return Ok();
}
