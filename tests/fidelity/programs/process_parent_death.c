// A child is told by a signal that its parent has ended: prctl(2),
// PR_SET_PDEATHSIG.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "check.h"

static void Grandchild(int ready, int told) {
  sigset_t set;
  int number = 0;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  CHECK(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
  CHECK(prctl(PR_SET_PDEATHSIG, SIGUSR1) == 0);
  CHECK(prctl(PR_GET_PDEATHSIG, &number) == 0 && number == SIGUSR1);
  CHECK(write(ready, "x", 1) == 1);
  CHECK(sigwaitinfo(&set, NULL) == SIGUSR1);
  CHECK(write(told, "y", 1) == 1);
  _exit(0);
}

int main(void) {
  int ready[2];
  int told[2];
  char byte;
  CHECK(pipe(ready) == 0 && pipe(told) == 0);
  const pid_t child = fork();
  if (child == 0) {
    if (fork() == 0) {
      Grandchild(ready[1], told[1]);
    }
    CHECK(read(ready[0], &byte, 1) == 1);
    _exit(0);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  CHECK(close(told[1]) == 0 && read(told[0], &byte, 1) == 1 && byte == 'y');
  return Ok();
}
