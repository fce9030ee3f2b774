// The stack is aligned at a handler's first instruction as at every function's,
// and the 128 bytes below the stack pointer are kept: System V ABI.
#include <signal.h>
#include <stdint.h>

#include "check.h"

static volatile uintptr_t frame = 1;
static void OnSignal(int number) {
  (void)number;
  frame = (uintptr_t)__builtin_frame_address(0);
}

int main(void) {
  CHECK(signal(SIGTRAP, OnSignal) != SIG_ERR);
  long kept = 0;
  __asm__ volatile(
      "movq $4711, -128(%%rsp)\n\t"
      "int3\n\t"
      "movq -128(%%rsp), %0"
      : "=r"(kept)
      :
      : "memory");
  CHECK(kept == 4711);
  CHECK(frame % 16 == 0);
  return Ok();
}
