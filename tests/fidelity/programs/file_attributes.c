// Extended attributes are set, listed, read and removed: setxattr(2).
#include <fcntl.h>
#include <string.h>
#include <sys/xattr.h>

#include "check.h"

int main(void) {
  const int fd = open("file", O_RDWR | O_CREAT, 0600);
  if (fsetxattr(fd, "user.one", "value", 5, XATTR_CREATE) != 0 &&
      errno == EOPNOTSUPP) {
    dprintf(1, "the file system has no extended attributes\n");
    return 77;
  }
  CHECK_FAILS(fsetxattr(fd, "user.one", "x", 1, XATTR_CREATE), EEXIST);
  char value[8] = "";
  CHECK(getxattr("file", "user.one", value, sizeof(value)) == 5);
  CHECK(strcmp(value, "value") == 0);
  CHECK_FAILS(getxattr("file", "user.one", value, 2), ERANGE);
  char names[64];
  CHECK(flistxattr(fd, names, sizeof(names)) >= 9);
  CHECK(removexattr("file", "user.one") == 0);
  CHECK_FAILS(fgetxattr(fd, "user.one", value, sizeof(value)), ENODATA);
  return Ok();
}
