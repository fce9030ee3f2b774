// A division by zero of integers and an unmasked one of SSE come as SIGFPE with
// their codes: sigaction(2), feenableexcept(3).
#include <setjmp.h>
#include <signal.h>

#include "check.h"

static sigjmp_buf back;
static void OnFault(int number, siginfo_t* info, void* context) {
  (void)context;
  CHECK(number == SIGFPE);
  siglongjmp(back, info->si_code);
}

int main(void) {
  struct sigaction action = {.sa_sigaction = OnFault, .sa_flags = SA_SIGINFO};
  CHECK(sigaction(SIGFPE, &action, NULL) == 0);
  int code = sigsetjmp(back, 1);
  if (code == 0) {
    int high = 0;
    int low = 1;
    __asm__ volatile("idivl %2" : "+a"(low), "+d"(high) : "r"(0));
    CHECK(0);
  }
  CHECK(code == FPE_INTDIV);
  code = sigsetjmp(back, 1);
  if (code == 0) {
    const unsigned unmasked = 0x1f80 & ~0x200u;
    __asm__ volatile("ldmxcsr %0" : : "m"(unmasked));
    volatile double zero = 0;
    volatile double result = 1 / zero;
    (void)result;
    CHECK(0);
  }
  CHECK(code == FPE_FLTDIV);
  return Ok();
}
