// The stack grows where it is touched, up to its limit: getrlimit(2).
#include <string.h>
#include <sys/resource.h>

#include "check.h"

enum { kRoom = 4096, kDepth = 700 };  // a third of the usual limit

static int Deeper(int depth) {
  volatile char room[kRoom];
  memset((char*)room, depth, sizeof(room));
  return (depth < kDepth ? Deeper(depth + 1) : 0) +
         (room[depth] == (char)depth);
}

int main(void) {
  struct rlimit limit;
  CHECK(getrlimit(RLIMIT_STACK, &limit) == 0);
  CHECK(limit.rlim_cur > 2 * kDepth * kRoom);
  CHECK(Deeper(0) == kDepth + 1);
  return Ok();
}
