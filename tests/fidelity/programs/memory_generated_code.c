// Code that is written, made executable, run, changed and run again:
// mprotect(2).
#include <string.h>
#include <sys/mman.h>

#include "check.h"

int main(void) {
  unsigned char code[] = {0xb8, 1, 0, 0, 0, 0xc3};  // mov $1, %eax; ret
  unsigned char* map = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(map != MAP_FAILED);
  int (*call)(void) = (int (*)(void))map;
  for (unsigned char i = 1; i < 4; ++i) {
    CHECK(mprotect(map, 4096, PROT_READ | PROT_WRITE) == 0);
    code[1] = i;
    memcpy(map, code, sizeof(code));
    CHECK(mprotect(map, 4096, PROT_READ | PROT_EXEC) == 0);
    CHECK(call() == i);
  }
  return Ok();
}
