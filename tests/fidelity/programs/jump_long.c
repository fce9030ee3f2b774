// A jump out of nested calls brings back the registers that are kept, and the
// mask only where it was saved: setjmp(3).
#include <setjmp.h>
#include <signal.h>

#include "check.h"

static sigjmp_buf back;
static __attribute__((noinline)) void Deep(int depth) {
  if (depth == 0) {
    siglongjmp(back, 5);
  }
  Deep(depth - 1);
}

static int BlockedAfter(int saved) {
  sigset_t set;
  sigemptyset(&set);
  CHECK(sigprocmask(SIG_SETMASK, &set, NULL) == 0);
  const int value = sigsetjmp(back, saved);
  if (value == 0) {
    sigaddset(&set, SIGUSR1);
    CHECK(sigprocmask(SIG_SETMASK, &set, NULL) == 0);
    Deep(10);
  }
  CHECK(value == 5);
  CHECK(sigprocmask(SIG_SETMASK, NULL, &set) == 0);
  return sigismember(&set, SIGUSR1);
}

int main(void) {
  CHECK(BlockedAfter(1) == 0);
  CHECK(BlockedAfter(0) == 1);
  return Ok();
}
