// O_APPEND writes at the end wherever the offset is: open(2).
#include <fcntl.h>

#include "check.h"

int main(void) {
  const int fd = open("file", O_RDWR | O_CREAT | O_APPEND, 0600);
  CHECK(fd >= 0);
  CHECK(write(fd, "abc", 3) == 3);
  CHECK(lseek(fd, 0, SEEK_SET) == 0);
  CHECK(write(fd, "def", 3) == 3);
  CHECK(lseek(fd, 0, SEEK_CUR) == 6);
  char text[8] = "";
  CHECK(pread(fd, text, sizeof(text), 2) == 4);
  CHECK(text[0] == 'c' && text[3] == 'f');
  return Ok();
}
