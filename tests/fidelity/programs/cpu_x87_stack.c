// Values are pushed and popped, and an empty register that is read is an
// invalid operation of the stack: Intel SDM 1, 8.5.1.1.
#include <stdint.h>

#include "check.h"

int main(void) {
  double result;
  __asm__ volatile("fld1; fldpi; fldz; faddp; fxch; faddp; fstpl %0"
                   : "=m"(result));
  CHECK(result > 4.14 && result < 4.15);
  uint16_t status;
  __asm__ volatile(
      "fninit\n\t"
      "fstpl %1\n\t"
      "fnstsw %0"
      : "=a"(status), "=m"(result));
  CHECK((status & 0x41) == 0x41 && (status & 0x200) == 0);
  CHECK(result != result);
  __asm__ volatile("fninit");
  return Ok();
}
