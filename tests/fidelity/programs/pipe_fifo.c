// A named pipe connects a process and its child; opening waits for the other
// side: fifo(7), mkfifo(3).
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "check.h"

int main(void) {
  CHECK(mkfifo("fifo", 0600) == 0);
  CHECK_FAILS(open("fifo", O_WRONLY | O_NONBLOCK), ENXIO);
  const pid_t child = fork();
  if (child == 0) {
    const int fd = open("fifo", O_WRONLY);
    CHECK(fd >= 0 && write(fd, "hi", 2) == 2);
    _exit(0);
  }
  const int fd = open("fifo", O_RDONLY);
  char text[4];
  CHECK(fd >= 0 && read(fd, text, sizeof(text)) == 2 && text[1] == 'i');
  CHECK(read(fd, text, sizeof(text)) == 0);
  int status;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  return Ok();
}
