// 64 bits of precision are kept, a narrower control word rounds, and the status
// word tells inexact results: Intel SDM 1, chapter 8.
#include <stdint.h>

#include "check.h"

static uint16_t Status(void) {
  uint16_t status;
  __asm__ volatile("fnstsw %0" : "=a"(status));
  return status;
}

int main(void) {
  volatile long double one = 1;
  volatile long double small = 0x1p-63L;
  volatile long double sum = one + small;
  CHECK(sum != one && sum - one == small);
  uint16_t word;
  __asm__ volatile("fnstcw %0" : "=m"(word));
  CHECK((word & 0x300) == 0x300);
  const uint16_t narrow = (uint16_t)(word & ~0x300);
  __asm__ volatile("fnclex; fldcw %0" : : "m"(narrow));
  sum = one + small;
  CHECK(sum == one && (Status() & 0x20) != 0);
  __asm__ volatile("fnclex; fldcw %0" : : "m"(word));
  CHECK((Status() & 0x20) == 0);
  return Ok();
}
