// A blocked signal is taken without a handler, queued real-time ones one by one
// and in order: sigtimedwait(2), signal(7).
#include <signal.h>
#include <time.h>

#include "check.h"

int main(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGRTMIN);
  sigaddset(&set, SIGRTMIN + 1);
  CHECK(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
  for (int i = 0; i < 3; ++i) {
    const union sigval value = {.sival_int = i};
    CHECK(sigqueue(getpid(), SIGRTMIN + (i == 1), value) == 0);
  }
  const int wanted[] = {0, 2, 1};  // the lower number first
  siginfo_t info;
  for (int i = 0; i < 3; ++i) {
    CHECK(sigwaitinfo(&set, &info) == SIGRTMIN + (i == 2));
    CHECK(info.si_value.sival_int == wanted[i]);
  }
  const struct timespec none = {0, 0};
  CHECK_FAILS(sigtimedwait(&set, &info, &none), EAGAIN);
  return Ok();
}
