// A name takes the place of another, two are exchanged, and with
// RENAME_NOREPLACE nothing is replaced: renameat2(2).
#include <fcntl.h>
#include <sys/stat.h>

#include "check.h"

static ino_t Inode(const char* path) {
  struct stat about;
  CHECK(stat(path, &about) == 0);
  return about.st_ino;
}

int main(void) {
  CHECK(mknod("a", S_IFREG | 0600, 0) == 0);
  CHECK(mknod("b", S_IFREG | 0600, 0) == 0);
  const ino_t a = Inode("a");
  const ino_t b = Inode("b");
  CHECK_FAILS(renameat2(AT_FDCWD, "a", AT_FDCWD, "b", RENAME_NOREPLACE),
              EEXIST);
  CHECK(renameat2(AT_FDCWD, "a", AT_FDCWD, "b", RENAME_EXCHANGE) == 0);
  CHECK(Inode("a") == b && Inode("b") == a);
  CHECK(rename("a", "b") == 0);
  CHECK(Inode("b") == b);
  CHECK_FAILS(access("a", F_OK), ENOENT);
  return Ok();
}
