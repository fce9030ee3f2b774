// Real-time signals go up to 64, and the last one is delivered: signal(7).
#include <signal.h>

#include "check.h"

static volatile sig_atomic_t seen = 0;
static void OnSignal(int number) { seen = number; }

int main(void) {
  CHECK(SIGRTMAX == 64 && SIGRTMIN <= 35);
  for (int number = SIGRTMIN; number <= SIGRTMAX; ++number) {
    CHECK(signal(number, OnSignal) == SIG_DFL);
    CHECK(raise(number) == 0 && seen == number);
  }
  return Ok();
}
