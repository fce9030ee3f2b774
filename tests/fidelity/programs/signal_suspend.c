// The mask is replaced for the time of the wait alone, which ends with EINTR:
// sigsuspend(2).
#include <signal.h>

#include "check.h"

static volatile sig_atomic_t count = 0;
static void OnSignal(int number) { count += number == SIGUSR1; }

int main(void) {
  CHECK(signal(SIGUSR1, OnSignal) != SIG_ERR);
  sigset_t blocked;
  sigset_t none;
  sigset_t now;
  sigemptyset(&none);
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  CHECK(sigprocmask(SIG_BLOCK, &blocked, NULL) == 0);
  CHECK(raise(SIGUSR1) == 0);
  CHECK_FAILS(sigsuspend(&none), EINTR);
  CHECK(count == 1);
  CHECK(sigprocmask(SIG_BLOCK, NULL, &now) == 0);
  CHECK(sigismember(&now, SIGUSR1) == 1);
  return Ok();
}
