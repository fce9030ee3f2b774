// Bits are found, counted, swapped and rotated: BSF, BSR, POPCNT, BSWAP, RCL,
// SHLD in Intel SDM 2.
#include <stdint.h>

#include "check.h"

int main(void) {
  volatile uint64_t value = 0x00f0000000000100;
  uint64_t result;
  uint8_t zero;
  __asm__("bsfq %1, %0" : "=r"(result) : "r"(value) : "cc");
  CHECK(result == 8);
  __asm__("bsrq %1, %0" : "=r"(result) : "r"(value) : "cc");
  CHECK(result == 55);
  __asm__("bsfq %2, %0; setz %1" : "=r"(result), "=q"(zero) : "r"(0ul) : "cc");
  CHECK(zero == 1);
  __asm__("popcntq %1, %0" : "=r"(result) : "r"(value) : "cc");
  CHECK(result == 5 && __builtin_bswap64(value) == 0x000100000000f000);
  uint8_t byte = 0x81;
  __asm__("stc; rclb $1, %0" : "+q"(byte) : : "cc");
  CHECK(byte == 3);
  uint32_t high = 0x12345678;
  __asm__("shldl $8, %1, %0" : "+r"(high) : "r"(0xab000000u) : "cc");
  CHECK(high == 0x345678ab);
  return Ok();
}
