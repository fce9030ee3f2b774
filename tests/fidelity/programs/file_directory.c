// A folder's names, and that it is removed only when empty: getdents64(2),
// mkdir(2), rmdir(2).
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "check.h"

int main(void) {
  CHECK(mkdir("folder", 0700) == 0);
  CHECK_FAILS(mkdir("folder", 0700), EEXIST);
  CHECK(mknod("folder/a", S_IFREG | 0600, 0) == 0);
  CHECK(mknod("folder/b", S_IFREG | 0600, 0) == 0);
  CHECK_FAILS(rmdir("folder"), ENOTEMPTY);
  DIR* folder = opendir("folder");
  CHECK(folder != NULL);
  int names = 0;
  for (struct dirent* entry; (entry = readdir(folder)) != NULL; ++names) {
    CHECK(strchr("ab.", entry->d_name[0]) != NULL);
  }
  CHECK(names == 4);
  CHECK(unlink("folder/a") == 0 && unlink("folder/b") == 0);
  CHECK(rmdir("folder") == 0);
  return Ok();
}
