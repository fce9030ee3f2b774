// A timer sends its signal with the value that it was given, once, not early:
// timer_create(2).
#include <signal.h>
#include <time.h>

#include "check.h"

int main(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGRTMIN);
  CHECK(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL,
                           .sigev_signo = SIGRTMIN,
                           .sigev_value = {.sival_int = 99}};
  timer_t timer;
  CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
  struct timespec begin;
  struct timespec end;
  const struct itimerspec once = {{0, 0}, {1, 0}};
  CHECK(clock_gettime(CLOCK_MONOTONIC, &begin) == 0);
  CHECK(timer_settime(timer, 0, &once, NULL) == 0);
  siginfo_t info;
  CHECK(sigwaitinfo(&set, &info) == SIGRTMIN);
  CHECK(clock_gettime(CLOCK_MONOTONIC, &end) == 0);
  CHECK(info.si_code == SI_TIMER && info.si_value.sival_int == 99);
  CHECK(end.tv_sec > begin.tv_sec + 1 ||
        (end.tv_sec == begin.tv_sec + 1 && end.tv_nsec >= begin.tv_nsec));
  CHECK(timer_getoverrun(timer) == 0 && timer_delete(timer) == 0);
  return Ok();
}
