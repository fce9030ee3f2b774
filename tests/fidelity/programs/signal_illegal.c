// UD2 is an illegal instruction at its own address: sigaction(2), ILL_ILLOPN.
#include <signal.h>
#include <ucontext.h>

#include "check.h"

extern const char illegal[];
static volatile int right = 0;
static void OnIllegal(int number, siginfo_t* info, void* context) {
  ucontext_t* state = context;
  right = number == SIGILL && info->si_code == ILL_ILLOPN &&
          info->si_addr == illegal &&
          state->uc_mcontext.gregs[REG_RIP] == (long)illegal;
  state->uc_mcontext.gregs[REG_RIP] += 2;
}

int main(void) {
  struct sigaction action = {.sa_sigaction = OnIllegal, .sa_flags = SA_SIGINFO};
  CHECK(sigaction(SIGILL, &action, NULL) == 0);
  __asm__ volatile("illegal: ud2" : : : "memory");
  CHECK(right);
  return Ok();
}
