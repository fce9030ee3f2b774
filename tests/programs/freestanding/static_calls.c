// Recursion, calls through a table and a jump table without a C library.
#include "tests/programs/freestanding/static_start.h"

__attribute__((noinline)) static unsigned Fibonacci(unsigned n) {
  return n < 2 ? n : Fibonacci(n - 1) + Fibonacci(n - 2);
}

__attribute__((noinline)) static unsigned Add(unsigned a, unsigned b) {
  return a + b;
}
__attribute__((noinline)) static unsigned Sub(unsigned a, unsigned b) {
  return a - b;
}
__attribute__((noinline)) static unsigned Xor(unsigned a, unsigned b) {
  return a ^ b;
}

static unsigned (*volatile table[3])(unsigned, unsigned) = {Add, Sub, Xor};

__attribute__((noinline)) static unsigned Select(unsigned which, unsigned x) {
  switch (which % 6) {
    case 0:
      return x + 3;
    case 1:
      return x * 5;
    case 2:
      return x ^ 0x55;
    case 3:
      return x >> 1;
    case 4:
      return ~x;
    default:
      return x - 7;
  }
}

int Main(void) {
  unsigned x = Fibonacci(11);
  if (x != 89) {
    return 1;
  }
  for (unsigned i = 0; i < 200; ++i) {
    x = table[i % 3](x, i);
    x = Select(x, x);
  }
  return x == 0xdeadbeef ? 2 : 0;
}
