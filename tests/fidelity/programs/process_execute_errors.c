// A file that is no program is refused by its reason: execve(2).
#include <fcntl.h>
#include <sys/stat.h>

#include "check.h"

static int Execute(const char* path) {
  char* const none[] = {(char*)path, NULL};
  return execve(path, none, none + 1);
}

int main(void) {
  CHECK_FAILS(Execute("none"), ENOENT);
  CHECK(mkdir("folder", 0700) == 0);
  CHECK_FAILS(Execute("folder"), EACCES);
  CHECK_FAILS(Execute("folder/none"), ENOENT);
  const int fd = open("text", O_WRONLY | O_CREAT, 0600);
  CHECK(write(fd, "no program", 10) == 10 && close(fd) == 0);
  CHECK_FAILS(Execute("text"), EACCES);
  CHECK_FAILS(Execute("text/none"), ENOTDIR);
  CHECK(chmod("text", 0700) == 0);
  CHECK_FAILS(Execute("text"), ENOEXEC);
  return Ok();
}
