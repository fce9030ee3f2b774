// With O_DIRECT each write is a packet that a short read cuts off: pipe(2).
#include <fcntl.h>

#include "check.h"

int main(void) {
  int ends[2];
  char text[8];
  CHECK(pipe2(ends, O_DIRECT) == 0);
  CHECK(write(ends[1], "abc", 3) == 3 && write(ends[1], "de", 2) == 2);
  CHECK(read(ends[0], text, 2) == 2 && text[1] == 'b');
  CHECK(read(ends[0], text, sizeof(text)) == 2 && text[0] == 'd');
  return Ok();
}
