// Bytes go from file to file in the kernel, and offsets are moved as said:
// sendfile(2), copy_file_range(2).
#include <fcntl.h>
#include <sys/sendfile.h>

#include "check.h"

int main(void) {
  const int from = open("from", O_RDWR | O_CREAT, 0600);
  const int to = open("to", O_RDWR | O_CREAT, 0600);
  CHECK(write(from, "0123456789", 10) == 10);
  off_t offset = 4;
  CHECK(sendfile(to, from, &offset, 3) == 3);
  CHECK(offset == 7 && lseek(from, 0, SEEK_CUR) == 10);
  off_t in = 1;
  CHECK(copy_file_range(from, &in, to, NULL, 2, 0) == 2);
  CHECK(in == 3);
  char text[8];
  CHECK(pread(to, text, sizeof(text), 0) == 5);
  CHECK(text[0] == '4' && text[2] == '6' && text[3] == '1' && text[4] == '2');
  return Ok();
}
