// Names are looked up below a descriptor's folder and the current one:
// openat(2), fchdir(2), getcwd(3), faccessat(2).
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "check.h"

int main(void) {
  CHECK(mkdir("a", 0700) == 0);
  const int here = open(".", O_RDONLY | O_DIRECTORY);
  const int a = open("a", O_PATH | O_DIRECTORY);
  CHECK(openat(a, "file", O_WRONLY | O_CREAT, 0600) >= 0);
  CHECK(faccessat(AT_FDCWD, "a/file", R_OK | W_OK, 0) == 0);
  char before[4096];
  char after[4096];
  CHECK(getcwd(before, sizeof(before)) != NULL);
  CHECK(chdir("a") == 0 && access("file", F_OK) == 0);
  CHECK(getcwd(after, sizeof(after)) != NULL);
  CHECK(strncmp(before, after, strlen(before)) == 0);
  CHECK(strcmp(after + strlen(before), "/a") == 0);
  CHECK(fchdir(here) == 0 && access("file", F_OK) == -1);
  CHECK(unlinkat(a, "file", 0) == 0);
  CHECK(unlinkat(AT_FDCWD, "a", AT_REMOVEDIR) == 0);
  return Ok();
}
