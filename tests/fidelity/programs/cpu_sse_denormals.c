// Denormal results are flushed to zero, and denormal operands taken for zero,
// only where MXCSR says so: Intel SDM 1, 10.2.3.3.
#include <emmintrin.h>

#include "check.h"

int main(void) {
  volatile double least = 0x1p-1022;
  volatile double half = 0.5;
  volatile double denormal = least * half;
  CHECK(denormal != 0 && denormal * 2 == least);
  _mm_setcsr(_mm_getcsr() | 0x8000);
  volatile double flushed = least * half;
  CHECK(flushed == 0);
  _mm_setcsr((_mm_getcsr() & ~0x8000u) | 0x40);
  volatile double sum = denormal + denormal;
  CHECK(sum == 0);
  _mm_setcsr(_mm_getcsr() & ~0x40u);
  sum = denormal + denormal;
  CHECK(sum == least);
  return Ok();
}
