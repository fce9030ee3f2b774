// SIGALRM comes again and again, none of them early: setitimer(2).
#include <signal.h>
#include <sys/time.h>
#include <time.h>

#include "check.h"

static volatile sig_atomic_t alarms = 0;
static void OnAlarm(int number) { alarms += number == SIGALRM; }

static long Now(void) {
  struct timespec now;
  CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
  return now.tv_sec * 1000000000 + now.tv_nsec;
}

int main(void) {
  CHECK(signal(SIGALRM, OnAlarm) != SIG_ERR);
  const struct itimerval set = {{0, 20000}, {0, 20000}};
  const long begin = Now();
  CHECK(setitimer(ITIMER_REAL, &set, NULL) == 0);
  for (int i = 1; i <= 3; ++i) {
    for (int call = 0; call < 200; ++call) {  // part of the time passes here
      CHECK(getppid() > 0);
    }
    while (alarms < i) {
      pause();
    }
    CHECK(Now() - begin >= i * 20000000l);
  }
  struct itimerval old;
  const struct itimerval none = {{0, 0}, {0, 0}};
  CHECK(setitimer(ITIMER_REAL, &none, &old) == 0);
  CHECK(old.it_interval.tv_usec == 20000);
  return Ok();
}
