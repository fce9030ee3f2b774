// A blocked signal waits, is told as pending once, and comes when it is let:
// sigprocmask(2), sigpending(2).
#include <signal.h>

#include "check.h"

static volatile sig_atomic_t count = 0;
static void OnSignal(int number) { count += number == SIGUSR1; }

int main(void) {
  CHECK(signal(SIGUSR1, OnSignal) != SIG_ERR);
  sigset_t set;
  sigset_t pending;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  CHECK(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
  CHECK(raise(SIGUSR1) == 0 && raise(SIGUSR1) == 0);
  CHECK(count == 0);
  CHECK(sigpending(&pending) == 0 && sigismember(&pending, SIGUSR1) == 1);
  CHECK(sigprocmask(SIG_UNBLOCK, &set, NULL) == 0);
  CHECK(count == 1);
  CHECK(sigpending(&pending) == 0 && sigismember(&pending, SIGUSR1) == 0);
  return Ok();
}
