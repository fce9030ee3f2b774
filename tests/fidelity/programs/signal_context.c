// A handler changes a register of the interrupted code and its mask: what
// sigreturn(2) puts back is what is in the context.
#include <signal.h>
#include <ucontext.h>

#include "check.h"

static void OnTrap(int number, siginfo_t* info, void* context) {
  (void)number;
  (void)info;
  ucontext_t* state = context;
  state->uc_mcontext.gregs[REG_RAX] += 41;
  sigaddset(&state->uc_sigmask, SIGUSR2);
}

int main(void) {
  struct sigaction action = {.sa_sigaction = OnTrap, .sa_flags = SA_SIGINFO};
  CHECK(sigaction(SIGTRAP, &action, NULL) == 0);
  long value = 1;
  __asm__ volatile("int3" : "+a"(value) : : "memory");
  CHECK(value == 42);
  sigset_t now;
  CHECK(sigprocmask(SIG_BLOCK, NULL, &now) == 0);
  CHECK(sigismember(&now, SIGUSR2) == 1 && sigismember(&now, SIGTRAP) == 0);
  return Ok();
}
