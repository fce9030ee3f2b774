// A private mapping of a file keeps what is written to it to itself, a shared
// one writes it to the file: mmap(2), msync(2).
#include <fcntl.h>
#include <sys/mman.h>

#include "check.h"

int main(void) {
  const int fd = open("file", O_RDWR | O_CREAT, 0600);
  CHECK(write(fd, "abcd", 4) == 4);
  char* own = mmap(NULL, 4, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
  CHECK(own != MAP_FAILED);
  own[0] = 'X';
  char text[4];
  CHECK(pread(fd, text, 4, 0) == 4 && text[0] == 'a');
  char* shared = mmap(NULL, 4, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(shared != MAP_FAILED && shared[0] == 'a');
  shared[1] = 'Y';
  CHECK(msync(shared, 4, MS_SYNC) == 0);
  CHECK(pread(fd, text, 4, 0) == 4 && text[1] == 'Y');
  CHECK(pwrite(fd, "Z", 1, 2) == 1 && shared[2] == 'Z');
  CHECK(own[0] == 'X');
  return Ok();
}
