// An ignored signal is dropped even when it was pending, and kill with 0 only
// asks: signal(2), kill(2).
#include <signal.h>

#include "check.h"

int main(void) {
  sigset_t set;
  sigset_t pending;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  CHECK(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
  CHECK(raise(SIGUSR1) == 0);
  CHECK(signal(SIGUSR1, SIG_IGN) == SIG_DFL);
  CHECK(sigpending(&pending) == 0 && sigismember(&pending, SIGUSR1) == 0);
  CHECK(sigprocmask(SIG_UNBLOCK, &set, NULL) == 0);
  CHECK(raise(SIGUSR1) == 0);
  CHECK(kill(getpid(), 0) == 0);
  CHECK_FAILS(kill(getpid(), 65), EINVAL);
  CHECK(signal(SIGKILL, SIG_IGN) == SIG_ERR && errno == EINVAL);
  return Ok();
}
