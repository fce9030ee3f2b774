// A timer of the process's own CPU time ends while it computes: setitimer(2),
// ITIMER_VIRTUAL.
#include <signal.h>
#include <sys/time.h>

#include "check.h"

static volatile sig_atomic_t alarms = 0;
static void OnAlarm(int number) { alarms += number == SIGVTALRM; }

int main(void) {
  CHECK(signal(SIGVTALRM, OnAlarm) != SIG_ERR);
  const struct itimerval set = {{0, 0}, {0, 10000}};
  CHECK(setitimer(ITIMER_VIRTUAL, &set, NULL) == 0);
  volatile unsigned work = 0;
  while (alarms == 0) {
    ++work;
  }
  CHECK(alarms == 1 && work > 0);
  return Ok();
}
