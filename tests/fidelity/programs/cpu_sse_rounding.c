// The four roundings of MXCSR, and the flags that an operation sets: Intel SDM
// 1, 10.2.3.
#include <emmintrin.h>

#include "check.h"

static int Rounded(unsigned mode, double value) {
  _mm_setcsr((_mm_getcsr() & ~0x603fu) | mode << 13);
  return _mm_cvtsd_si32(_mm_set_sd(value));
}

int main(void) {
  volatile double half = 2.5;
  volatile double minus = -2.5;
  CHECK(Rounded(0, half) == 2 && Rounded(0, minus) == -2);
  CHECK(Rounded(1, half) == 2 && Rounded(1, minus) == -3);
  CHECK(Rounded(2, half) == 3 && Rounded(2, minus) == -2);
  CHECK(Rounded(3, half) == 2 && Rounded(3, minus) == -2);
  CHECK((_mm_getcsr() & 0x3f) == 0x20);
  volatile double huge = 1e300;
  CHECK(Rounded(0, huge) == (int)0x80000000 && (_mm_getcsr() & 1) == 1);
  return Ok();
}
