// Vectors are filled in order, and a hole reads as zeros: readv(2), pwritev(2).
#include <fcntl.h>
#include <string.h>
#include <sys/uio.h>

#include "check.h"

int main(void) {
  const int fd = open("file", O_RDWR | O_CREAT, 0600);
  CHECK(fd >= 0);
  struct iovec out[2] = {{"one", 3}, {"three", 5}};
  CHECK(pwritev(fd, out, 2, 10) == 8);
  CHECK(lseek(fd, 0, SEEK_CUR) == 0);
  char head[12];
  char tail[16];
  struct iovec in[2] = {{head, sizeof(head)}, {tail, sizeof(tail)}};
  CHECK(readv(fd, in, 2) == 18);
  CHECK(head[0] == 0 && head[9] == 0 && head[10] == 'o' && head[11] == 'n');
  CHECK(memcmp(tail, "ethree", 6) == 0);
  return Ok();
}
