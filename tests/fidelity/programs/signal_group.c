// A signal for the process group reaches the process and its child, each once:
// kill(2) with 0.
#include <signal.h>
#include <sys/wait.h>

#include "check.h"

static volatile sig_atomic_t count = 0;
static void OnSignal(int number) { count += number == SIGUSR1; }

int main(void) {
  CHECK(setpgid(0, 0) == 0 || errno == EPERM);
  CHECK(signal(SIGUSR1, OnSignal) != SIG_ERR);
  sigset_t set;
  sigset_t before;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  CHECK(sigprocmask(SIG_BLOCK, &set, &before) == 0);
  const pid_t child = fork();
  if (child == 0) {
    sigsuspend(&before);
    _exit(count == 1 ? 0 : 1);
  }
  CHECK(getpgid(child) == getpgrp());
  CHECK(kill(0, SIGUSR1) == 0);
  CHECK_FAILS(sigsuspend(&before), EINTR);
  CHECK(count == 1);
  int status;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  return Ok();
}
