// The environment is stored and loaded again with its control word and tags:
// FNSTENV, FLDENV, FNSAVE in Intel SDM 2.
#include <stdint.h>
#include <string.h>

#include "check.h"

int main(void) {
  struct {
    uint16_t control, r1, status, r2, tag, r3;
    uint32_t rest[4];
  } before, after;
  memset(&before, 0, sizeof(before));
  memset(&after, 0, sizeof(after));
  __asm__ volatile("fninit; fld1; fnstenv %0; fldenv %0" : "+m"(before));
  CHECK(before.control == 0x37f && before.tag == 0x3fff);
  CHECK((before.status >> 11 & 7) == 7);
  __asm__ volatile("fldz; fnstenv %0; fninit" : "+m"(after));
  CHECK(after.tag == 0x1fff);
  uint8_t image[108];
  __asm__ volatile("fld1; fnsave %0" : "=m"(image));
  uint16_t exponent;
  memcpy(&exponent, image + 28 + 8, 2);
  CHECK(exponent == 0x3fff);
  return Ok();
}
