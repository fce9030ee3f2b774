// The break grows and shrinks, and what is new is zero, even after a page of it
// was protected: brk(2).
#include <stdint.h>
#include <sys/mman.h>

#include "check.h"

int main(void) {
  char* start = sbrk(0);
  CHECK(sbrk(16384) == start);
  char* page = (char*)(((uintptr_t)start + 4095) & ~4095ul);
  page[0] = 'x';
  CHECK(mprotect(page, 4096, PROT_READ) == 0);
  CHECK(sbrk(8192) == start + 16384);
  CHECK(start[16384 + 8191] == 0 && page[0] == 'x');
  start[16384 + 8191] = 'y';
  CHECK(mprotect(page, 4096, PROT_READ | PROT_WRITE) == 0);
  page[1] = 'z';
  CHECK(brk(start) == 0 && sbrk(0) == start);
  CHECK(sbrk(16384) == start && page[0] == 0 && page[1] == 0);
  return Ok();
}
