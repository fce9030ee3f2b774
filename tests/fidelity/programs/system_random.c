// Random bytes come as many as asked for, in two calls not the same:
// getrandom(2).
#include <string.h>
#include <sys/random.h>

#include "check.h"

int main(void) {
  char one[32] = "";
  char two[32] = "";
  CHECK(getrandom(one, sizeof(one), 0) == 32);
  CHECK(getrandom(two, sizeof(two), GRND_NONBLOCK) == 32);
  CHECK(memcmp(one, two, 32) != 0);
  CHECK_FAILS(getrandom(one, 1, 0x100), EINVAL);
  return Ok();
}
