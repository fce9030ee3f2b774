// The counter of cycles never goes back in one thread: RDTSC, and RDTSCP where
// CPUID says that it is there, in Intel SDM 2.
#include <cpuid.h>
#include <stdint.h>
#include <x86intrin.h>

#include "check.h"

static int HasRdtscp(void) {
  unsigned a;
  unsigned b;
  unsigned c;
  unsigned d;
  return __get_cpuid(0x80000001, &a, &b, &c, &d) == 1 && (d & 1 << 27) != 0;
}

int main(void) {
  const int both = HasRdtscp();
  uint64_t last = __rdtsc();
  for (int i = 0; i < 50; ++i) {
    unsigned which;
    const uint64_t now = both && i % 2 == 0 ? __rdtscp(&which) : __rdtsc();
    CHECK(now >= last);
    last = now;
  }
  CHECK(last != 0);
  return Ok();
}
