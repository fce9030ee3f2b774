// A lock belongs to the open file: another open is refused, a duplicate is not,
// and the last close releases it: flock(2).
#include <fcntl.h>
#include <sys/file.h>

#include "check.h"

int main(void) {
  const int one = open("file", O_RDWR | O_CREAT, 0600);
  const int other = open("file", O_RDWR);
  const int same = dup(one);
  CHECK(flock(one, LOCK_EX) == 0);
  CHECK(flock(same, LOCK_EX | LOCK_NB) == 0);
  CHECK_FAILS(flock(other, LOCK_SH | LOCK_NB), EWOULDBLOCK);
  CHECK(close(one) == 0);
  CHECK_FAILS(flock(other, LOCK_SH | LOCK_NB), EWOULDBLOCK);
  CHECK(close(same) == 0);
  CHECK(flock(other, LOCK_SH | LOCK_NB) == 0);
  return Ok();
}
