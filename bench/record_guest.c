// A guest for bench/record.cc: one thread that computes, without a system call
// in its loop and with a hard to predict branch every few instructions.
#include <stdint.h>

int main(void) {
  uint32_t state = 1;
  uint32_t odd = 0;
  for (uint32_t i = 0; i < 10000000; ++i) {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    if ((state & 1) != 0) {
      ++odd;
    }
  }
  return odd > 4000000 && odd < 6000000 ? 0 : 1;
}
