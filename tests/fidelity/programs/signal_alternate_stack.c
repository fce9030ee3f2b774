// A handler with SA_ONSTACK runs on the stack that was given, and the old one
// is told: sigaltstack(2).
#include <signal.h>

#include "check.h"

static char stack[65536];
static volatile sig_atomic_t inside = 0;
static volatile sig_atomic_t told = 0;
static void OnSignal(int number) {
  (void)number;
  char here;
  inside = &here > stack && &here < stack + sizeof(stack);
  stack_t now;
  told = sigaltstack(NULL, &now) == 0 && now.ss_flags == SS_ONSTACK &&
         now.ss_sp == stack;
}

int main(void) {
  const stack_t given = {.ss_sp = stack, .ss_size = sizeof(stack)};
  CHECK(sigaltstack(&given, NULL) == 0);
  struct sigaction action = {.sa_handler = OnSignal, .sa_flags = SA_ONSTACK};
  CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
  CHECK(raise(SIGUSR1) == 0);
  CHECK(inside && told);
  stack_t after;
  CHECK(sigaltstack(NULL, &after) == 0 && after.ss_flags == 0);
  return Ok();
}
