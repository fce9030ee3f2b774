// Changes in a folder are told with their names: inotify(7).
#include <fcntl.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "check.h"

int main(void) {
  const int fd = inotify_init1(IN_NONBLOCK);
  CHECK(fd >= 0 && mkdir("folder", 0700) == 0);
  const int watch = inotify_add_watch(fd, "folder", IN_CREATE | IN_DELETE);
  CHECK(watch >= 0);
  CHECK(mknod("folder/new", S_IFREG | 0600, 0) == 0);
  CHECK(unlink("folder/new") == 0);
  char bytes[256] __attribute__((aligned(8)));
  const ssize_t size = read(fd, bytes, sizeof(bytes));
  const struct inotify_event* one = (struct inotify_event*)bytes;
  CHECK(one->wd == watch && one->mask == IN_CREATE);
  CHECK(strcmp(one->name, "new") == 0);
  const struct inotify_event* two =
      (struct inotify_event*)(bytes + sizeof(*one) + one->len);
  CHECK(two->mask == IN_DELETE);
  CHECK(size == (ssize_t)(2 * sizeof(*one) + one->len + two->len));
  CHECK(inotify_rm_watch(fd, watch) == 0);
  return Ok();
}
