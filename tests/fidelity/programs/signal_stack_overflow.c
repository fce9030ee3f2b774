// Recursion that is too deep is caught on an alternate stack, and the program
// goes on: sigaltstack(2), getrlimit(2).
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>

#include "check.h"

static sigjmp_buf back;
static void OnFault(int number) { siglongjmp(back, number); }

static int Deeper(int depth) {
  volatile char room[4096];
  memset((char*)room, depth, sizeof(room));
  return (depth < 1000000 ? Deeper(depth + 1) : 0) + room[depth % 4096];
}

int main(void) {
  static char stack[65536];
  const struct rlimit limit = {1 << 20, 8 << 20};
  CHECK(setrlimit(RLIMIT_STACK, &limit) == 0);
  const stack_t given = {.ss_sp = stack, .ss_size = sizeof(stack)};
  CHECK(sigaltstack(&given, NULL) == 0);
  struct sigaction action = {.sa_handler = OnFault, .sa_flags = SA_ONSTACK};
  CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
  const int number = sigsetjmp(back, 1);
  if (number == 0) {
    return Deeper(0);
  }
  CHECK(number == SIGSEGV);
  return Ok();
}
