// Two names of one file, the text of a symbolic link, and a file without a name
// that lives on: link(2), readlink(2), unlink(2).
#include <fcntl.h>
#include <sys/stat.h>

#include "check.h"

int main(void) {
  const int fd = open("a", O_RDWR | O_CREAT, 0600);
  struct stat about;
  CHECK(link("a", "b") == 0);
  CHECK(fstat(fd, &about) == 0 && about.st_nlink == 2);
  CHECK(symlink("nowhere", "c") == 0);
  char text[4];
  CHECK(readlink("c", text, sizeof(text)) == 4 && text[3] == 'h');
  CHECK_FAILS(stat("c", &about), ENOENT);
  CHECK(lstat("c", &about) == 0 && S_ISLNK(about.st_mode));
  CHECK(unlink("a") == 0 && unlink("b") == 0);
  CHECK(fstat(fd, &about) == 0 && about.st_nlink == 0);
  CHECK(write(fd, "x", 1) == 1);
  return Ok();
}
