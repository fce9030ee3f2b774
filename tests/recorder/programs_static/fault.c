// Ends by a fault, with nothing else to tell of it.
#include "nolibc.h"

void _start(void) {
  for (volatile int i = 0; i < 10; ++i) {
  }
  *(volatile int*)16 = 1;
  Exit(0);
}
