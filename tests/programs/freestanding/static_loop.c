// A mix of loops and conditional branches without a C library: its instruction
// stream is the same under every producer of traces.
#include "tests/programs/freestanding/static_start.h"

static volatile unsigned sink;

static unsigned Collatz(unsigned n) {
  unsigned steps = 0;
  for (; n != 1; ++steps) {
    n = n % 2 == 0 ? n / 2 : 3 * n + 1;
  }
  return steps;
}

int Main(void) {
  unsigned longest = 0;
  for (unsigned n = 1; n < 120; ++n) {
    unsigned steps = Collatz(n);
    if (steps > longest) {
      longest = steps;
    }
  }
  sink = longest;
  return longest == 118 ? 0 : 1;  // of 97
}
