// Quotients and remainders of 128 bits and of negative numbers, and products of
// twice the width: DIV, IDIV, MUL in Intel SDM 2.
#include <stdint.h>

#include "check.h"

int main(void) {
  volatile __int128 large = ((__int128)5 << 70) + 17;
  volatile int64_t divisor = -(1ll << 40);
  CHECK((int64_t)(large / divisor) == -(5ll << 30));
  CHECK((int64_t)(large % divisor) == 17);
  uint64_t low = 0;
  uint64_t high = 3;
  __asm__("divq %2" : "+a"(low), "+d"(high) : "r"(4ul) : "cc");
  CHECK(low == 0xc000000000000000 && high == 0);
  volatile int32_t minus = -7;
  CHECK(minus / 2 == -3 && minus % 2 == -1);
  volatile uint64_t all = ~0ul;
  CHECK((uint64_t)(((unsigned __int128)all * all) >> 64) == all - 1);
  return Ok();
}
