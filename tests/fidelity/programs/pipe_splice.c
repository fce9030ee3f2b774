// Bytes are copied between pipes without being taken, moved, put in from memory
// and taken out into it: tee(2), splice(2), vmsplice(2).
#include <fcntl.h>
#include <string.h>
#include <sys/uio.h>

#include "check.h"

int main(void) {
  int one[2];
  int two[2];
  CHECK(pipe(one) == 0 && pipe(two) == 0);
  struct iovec text = {"hello", 5};
  CHECK(vmsplice(one[1], &text, 1, 0) == 5);
  CHECK(tee(one[0], two[1], 3, 0) == 3);
  CHECK(splice(one[0], NULL, two[1], NULL, 5, 0) == 5);
  char all[16] = "";
  CHECK(read(two[0], all, sizeof(all)) == 8);
  CHECK(strcmp(all, "helhello") == 0);
  char back[4] = "";
  struct iovec room = {back, 3};
  CHECK(write(one[1], "abc", 3) == 3);
  CHECK(vmsplice(one[0], &room, 1, 0) == 3);
  CHECK(strcmp(back, "abc") == 0);
  return Ok();
}
