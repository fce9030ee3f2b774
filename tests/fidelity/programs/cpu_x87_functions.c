// Remainders, roots, scaling and transcendental functions give what they must:
// FPREM, FSQRT, FSCALE, FPATAN in Intel SDM 2.
#include "check.h"

int main(void) {
  double a = 17;
  double b = 5;
  double r;
  __asm__ volatile("fprem" : "=t"(r) : "0"(a), "u"(b));
  CHECK(r == 2);
  __asm__ volatile("fsqrt" : "=t"(r) : "0"(6.25));
  CHECK(r == 2.5);
  __asm__ volatile("fscale" : "=t"(r) : "0"(1.5), "u"(4.0));
  CHECK(r == 24);
  __asm__ volatile("frndint" : "=t"(r) : "0"(2.5));
  CHECK(r == 2);
  __asm__ volatile("fpatan" : "=t"(r) : "0"(1.0), "u"(1.0) : "st(1)");
  CHECK(r > 0.785398 && r < 0.785399);
  __asm__ volatile("fabs; fchs" : "=t"(r) : "0"(-3.0));
  CHECK(r == -3);
  return Ok();
}
