// What /proc tells of a process is true: its program, descriptors and memory:
// proc(5).
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "check.h"

int main(int count, char** words) {
  (void)count;
  char path[PATH_MAX] = "";
  CHECK(readlink("/proc/self/exe", path, sizeof(path) - 1) > 0);
  CHECK(strcmp(path, words[0]) == 0);
  const int fd = open("/dev/null", O_RDONLY);
  char name[32];
  snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
  memset(path, 0, sizeof(path));
  CHECK(readlink(name, path, sizeof(path) - 1) == 9);
  CHECK(strcmp(path, "/dev/null") == 0);
  FILE* maps = fopen("/proc/self/maps", "r");
  CHECK(maps != NULL);
  int found = 0;
  char line[PATH_MAX + 128];
  while (fgets(line, sizeof(line), maps) != NULL) {
    unsigned long from;
    unsigned long to;
    CHECK(sscanf(line, "%lx-%lx", &from, &to) == 2 && from < to);
    found |= from <= (unsigned long)&found && (unsigned long)&found < to;
  }
  CHECK(found);
  return Ok();
}
