// Exchanges compare and change 8 and 16 bytes, additions give the old value:
// CMPXCHG16B, XADD, BTS in Intel SDM 2.
#include <stdint.h>

#include "check.h"

int main(void) {
  static uint64_t pair[2] __attribute__((aligned(16))) = {1, 2};
  uint64_t low = 1;
  uint64_t high = 2;
  uint8_t equal;
  for (int i = 0; i < 2; ++i) {
    __asm__ volatile("lock cmpxchg16b %0; sete %3"
                     : "+m"(pair), "+a"(low), "+d"(high), "=q"(equal)
                     : "b"(7ul), "c"(8ul)
                     : "cc", "memory");
    CHECK(equal == (i == 0));
  }
  CHECK(pair[0] == 7 && pair[1] == 8 && low == 7 && high == 8);
  static int32_t word = 5;
  CHECK(__atomic_fetch_add(&word, -7, __ATOMIC_SEQ_CST) == 5 && word == -2);
  CHECK(__atomic_exchange_n(&word, 9, __ATOMIC_SEQ_CST) == -2);
  CHECK((__atomic_fetch_or(&word, 2, __ATOMIC_SEQ_CST) & 2) == 0);
  CHECK(word == 11);
  return Ok();
}
