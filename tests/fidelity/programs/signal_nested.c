// sa_mask keeps a second signal out of the handler, SA_NODEFER lets the same
// one in, SA_RESETHAND works once: sigaction(2).
#include <signal.h>

#include "check.h"

static volatile sig_atomic_t depth = 0;
static volatile sig_atomic_t deepest = 0;
static volatile sig_atomic_t again = 0;
static void OnSignal(int number) {
  ++depth;
  deepest = depth > deepest ? depth : deepest;
  if (again > 0) {
    --again;
    raise(number == SIGUSR1 ? SIGUSR2 : number);
  }
  --depth;
}

static void Handle(int number, int flags, int masked) {
  struct sigaction action = {.sa_handler = OnSignal, .sa_flags = flags};
  sigemptyset(&action.sa_mask);
  if (masked != 0) {
    sigaddset(&action.sa_mask, masked);
  }
  CHECK(sigaction(number, &action, NULL) == 0);
}

int main(void) {
  Handle(SIGUSR1, 0, SIGUSR2);
  Handle(SIGUSR2, SA_NODEFER, 0);
  again = 1;
  CHECK(raise(SIGUSR1) == 0 && deepest == 1 && again == 0);
  again = 2;
  CHECK(raise(SIGUSR2) == 0 && deepest == 3);
  Handle(SIGUSR1, SA_RESETHAND, 0);
  CHECK(raise(SIGUSR1) == 0);
  struct sigaction now;
  CHECK(sigaction(SIGUSR1, NULL, &now) == 0 && now.sa_handler == SIG_DFL);
  return Ok();
}
