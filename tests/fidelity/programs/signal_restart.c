// A read is begun again behind a handler with SA_RESTART, without it fails with
// EINTR: signal(7).
#include <pthread.h>
#include <signal.h>

#include "check.h"

static int ends[2];
static volatile sig_atomic_t count = 0;
static void OnSignal(int number) {
  (void)number;
  ++count;
  CHECK(write(ends[1], "x", 1) == 1);
}

static void OnAlarm(int number) {
  (void)number;
  ++count;
}

int main(void) {
  CHECK(pipe(ends) == 0);
  struct sigaction action = {.sa_handler = OnSignal, .sa_flags = SA_RESTART};
  CHECK(sigaction(SIGALRM, &action, NULL) == 0);
  char byte;
  alarm(1);
  CHECK(read(ends[0], &byte, 1) == 1 && byte == 'x' && count == 1);
  action.sa_handler = OnAlarm;
  action.sa_flags = 0;
  CHECK(sigaction(SIGALRM, &action, NULL) == 0);
  alarm(1);
  CHECK_FAILS(read(ends[0], &byte, 1), EINTR);
  CHECK(count == 2);
  return Ok();
}
