// Repeated string instructions go up or down, stop at a difference, and do
// nothing for a count of zero: REP, REPNE in Intel SDM 2.
#include <string.h>

#include "check.h"

int main(void) {
  char from[64];
  char to[64] = "";
  strcpy(from, "a string that is moved");
  char* source = from;
  char* target = to;
  unsigned long count = 23;
  __asm__ volatile("rep movsb"
                   : "+S"(source), "+D"(target), "+c"(count)
                   :
                   : "memory");
  CHECK(count == 0 && target == to + 23 && strcmp(from, to) == 0);
  target = to;
  count = 64;
  __asm__ volatile("repne scasb"
                   : "+D"(target), "+c"(count)
                   : "a"('t')
                   : "memory", "cc");
  CHECK(target == to + 4 && count == 60);
  target = to + 22;
  count = 3;
  __asm__ volatile("std; rep stosb; cld"
                   : "+D"(target), "+c"(count)
                   : "a"('x')
                   : "memory", "cc");
  CHECK(strcmp(to, "a string that is movxxx") == 0);
  CHECK(target == to + 19 && to[19] == 'v');
  __asm__ volatile("rep stosb"
                   : "+D"(target), "+c"(count)
                   : "a"('y')
                   : "memory");
  CHECK(to[19] == 'v');
  return Ok();
}
