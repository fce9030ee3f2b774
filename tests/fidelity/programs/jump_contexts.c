// Two flows of control with stacks of their own take turns: makecontext(3).
#include <ucontext.h>

#include "check.h"

static ucontext_t outside;
static ucontext_t inside;
static char stack[65536];
static int steps = 0;
static void Run(int step) {
  for (int i = 0; i < 3; ++i) {
    steps += step;
    CHECK(swapcontext(&inside, &outside) == 0);
  }
}

int main(void) {
  CHECK(getcontext(&inside) == 0);
  inside.uc_stack.ss_sp = stack;
  inside.uc_stack.ss_size = sizeof(stack);
  inside.uc_link = &outside;
  makecontext(&inside, (void (*)(void))Run, 1, 10);
  for (int i = 1; i <= 4; ++i) {
    CHECK(swapcontext(&outside, &inside) == 0);
    CHECK(steps == (i < 4 ? i : 3) * 10);
  }
  return Ok();
}
