// Descriptors beyond 1,024 can be selected with a large set: select(2).
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include "check.h"

int main(void) {
  const struct rlimit limit = {2000, 2000};
  int ends[2];
  CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0 && pipe(ends) == 0);
  CHECK(dup2(ends[0], 1500) == 1500 && write(ends[1], "x", 1) == 1);
  unsigned long set[32];
  memset(set, 0, sizeof(set));
  set[1500 / 64] |= 1ul << (1500 % 64);
  struct timeval none = {0, 0};
  CHECK(syscall(SYS_select, 1501, set, NULL, NULL, &none) == 1);
  CHECK(set[1500 / 64] == 1ul << (1500 % 64));
  return Ok();
}
