// A fault's handler is told address and reason and goes on elsewhere:
// sigaction(2), sigsetjmp(3).
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

#include "check.h"

static sigjmp_buf back;
static void* volatile address;
static volatile int code;
static void OnFault(int number, siginfo_t* info, void* context) {
  (void)number;
  (void)context;
  address = info->si_addr;
  code = info->si_code;
  siglongjmp(back, 1);
}

int main(void) {
  struct sigaction action = {.sa_sigaction = OnFault, .sa_flags = SA_SIGINFO};
  CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
  char* page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(page != MAP_FAILED);
  if (sigsetjmp(back, 1) == 0) {
    *(volatile char*)(page + 5) = 1;
    CHECK(0);
  }
  CHECK(address == page + 5 && code == SEGV_ACCERR);
  CHECK(munmap(page, 4096) == 0);
  if (sigsetjmp(back, 1) == 0) {
    (void)*(volatile char*)(page + 6);
    CHECK(0);
  }
  CHECK(address == page + 6 && code == SEGV_MAPERR);
  return Ok();
}
