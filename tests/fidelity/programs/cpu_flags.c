// Carry, overflow and zero of additions, shifts and multiplications, and the
// flags as a word: Intel SDM 1, 3.4.3.
#include <stdint.h>

#include "check.h"

int main(void) {
  uint32_t sum;
  CHECK(__builtin_add_overflow(0xffffffffu, 1u, &sum) && sum == 0);
  int32_t product;
  CHECK(__builtin_mul_overflow(1 << 20, 1 << 12, &product) && product == 0);
  uint64_t flags;
  uint8_t value = 0x81;
  __asm__ volatile("shlb $1, %1; pushfq; popq %0"
                   : "=r"(flags), "+q"(value)
                   :
                   : "cc");
  CHECK(value == 2 && (flags & 1) == 1 && (flags & 0x800) != 0);
  __asm__ volatile("stc; cmc; pushfq; popq %0" : "=r"(flags) : : "cc");
  CHECK((flags & 1) == 0 && (flags & 2) == 2);
  uint64_t low = ~0ul;
  uint64_t high = 0;
  __asm__ volatile("addq $1, %0; adcq $0, %1" : "+r"(low), "+r"(high) : : "cc");
  CHECK(low == 0 && high == 1);
  return Ok();
}
