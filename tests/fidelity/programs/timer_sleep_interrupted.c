// A signal ends a sleep, and what is left of it is told: nanosleep(2).
#include <signal.h>
#include <time.h>

#include "check.h"

static volatile sig_atomic_t alarms = 0;
static void OnAlarm(int number) { alarms += number == SIGALRM; }

int main(void) {
  CHECK(signal(SIGALRM, OnAlarm) != SIG_ERR);
  struct timespec left = {0, 0};
  const struct timespec wait = {100, 0};
  CHECK(alarm(1) == 0);
  CHECK_FAILS(nanosleep(&wait, &left), EINTR);
  CHECK(alarms == 1);
  CHECK(left.tv_sec >= 50 && left.tv_sec <= 99);
  CHECK(alarm(100) == 0 && alarm(0) > 50);
  return Ok();
}
