// A handler with SA_SIGINFO is told the number, the value and the sender of a
// queued signal: sigqueue(3), sigaction(2).
#include <signal.h>

#include "check.h"

static volatile sig_atomic_t value = 0;
static volatile sig_atomic_t right = 0;
static void OnSignal(int number, siginfo_t* info, void* context) {
  (void)context;
  value = info->si_value.sival_int;
  right = number == SIGUSR1 && info->si_code == SI_QUEUE &&
          info->si_pid == getpid() && info->si_uid == getuid();
}

int main(void) {
  struct sigaction action = {.sa_sigaction = OnSignal, .sa_flags = SA_SIGINFO};
  CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
  const union sigval sent = {.sival_int = 4711};
  CHECK(sigqueue(getpid(), SIGUSR1, sent) == 0);
  CHECK(value == 4711 && right);
  return Ok();
}
