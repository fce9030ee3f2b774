// SIGALRM comes again and again, none of them early: setitimer(2).
#include <signal.h>
#include <sys/time.h>
#include <time.h>

#include "check.h"

static volatile sig_atomic_t alarms = 0;
static void OnAlarm(int number) { alarms += number == SIGALRM; }

static const struct itimerval none = {{0, 0}, {0, 0}};

static long Now(void) {
  struct timespec now;
  CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
  return now.tv_sec * 1000000000 + now.tv_nsec;
}

// The time until this many alarms from now on, 20 ms apart.
static long TimeOf(int count) {
  const struct itimerval set = {{0, 20000}, {0, 20000}};
  CHECK(setitimer(ITIMER_REAL, &none, NULL) == 0);
  alarms = 0;
  const long begin = Now();
  CHECK(setitimer(ITIMER_REAL, &set, NULL) == 0);
  for (int call = 0; call < 200; ++call) {  // part of the time passes here
    CHECK(getppid() > 0);
  }
  while (alarms < count) {
    pause();
  }
  return Now() - begin;
}

int main(void) {
  CHECK(signal(SIGALRM, OnAlarm) != SIG_ERR);
  for (int i = 0; i < 20; ++i) {
    CHECK(TimeOf(1) >= 20000000);
  }
  CHECK(TimeOf(3) >= 60000000);
  struct itimerval old;
  CHECK(setitimer(ITIMER_REAL, &none, &old) == 0);
  CHECK(old.it_interval.tv_usec == 20000);
  return Ok();
}
