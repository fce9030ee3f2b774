// O_CREAT with O_EXCL fails where the name is taken, O_DIRECTORY on a file, and
// O_NOFOLLOW on a link: open(2).
#include <fcntl.h>

#include "check.h"

int main(void) {
  CHECK(open("file", O_WRONLY | O_CREAT | O_EXCL, 0600) >= 0);
  CHECK_FAILS(open("file", O_WRONLY | O_CREAT | O_EXCL, 0600), EEXIST);
  CHECK_FAILS(open("file", O_RDONLY | O_DIRECTORY), ENOTDIR);
  CHECK(symlink("file", "link") == 0);
  CHECK_FAILS(open("link", O_RDONLY | O_NOFOLLOW), ELOOP);
  CHECK(open("link", O_RDONLY) >= 0);
  return Ok();
}
