// The vendor is a text, SSE2 is there, and what a CPU says is what it said:
// CPUID in Intel SDM 2.
#include <cpuid.h>
#include <string.h>

#include "check.h"

int main(void) {
  unsigned a;
  unsigned b;
  unsigned c;
  unsigned d;
  CHECK(__get_cpuid(0, &a, &b, &c, &d) == 1 && a >= 1);
  char vendor[13] = "";
  memcpy(vendor, &b, 4);
  memcpy(vendor + 4, &d, 4);
  memcpy(vendor + 8, &c, 4);
  CHECK(strlen(vendor) == 12);
  CHECK(__get_cpuid(1, &a, &b, &c, &d) == 1 && (d & 1 << 26) != 0);
  CHECK((d & 1 << 25) != 0 && (d & 1) != 0);
  unsigned again;
  CHECK(__get_cpuid(1, &again, &b, &c, &d) == 1 && again == a);
  // A leaf without sub-leaves does not look at ECX.
  __cpuid_count(1, 0, a, b, c, d);
  const unsigned features[] = {c, d};
  __cpuid_count(1, 0xffff, again, b, c, d);
  CHECK(again == a && c == features[0] && d == features[1]);
  return Ok();
}
