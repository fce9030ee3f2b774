// In raw mode single bytes are read as they are, without echo: termios(3).
#include <fcntl.h>
#include <termios.h>

#include "check.h"

int main(void) {
  const int leader = posix_openpt(O_RDWR | O_NOCTTY);
  if (leader < 0) {
    dprintf(1, "there is no /dev/ptmx\n");
    return 77;
  }
  char name[64];
  CHECK(unlockpt(leader) == 0);
  CHECK(ptsname_r(leader, name, sizeof(name)) == 0);
  const int fd = open(name, O_RDWR | O_NOCTTY);
  struct termios mode;
  CHECK(tcgetattr(fd, &mode) == 0 && (mode.c_lflag & ICANON) != 0);
  cfmakeraw(&mode);
  CHECK(tcsetattr(fd, TCSANOW, &mode) == 0);
  CHECK(tcgetattr(fd, &mode) == 0 && (mode.c_lflag & (ICANON | ECHO)) == 0);
  CHECK(write(leader, "\x03", 1) == 1);
  char byte;
  CHECK(read(fd, &byte, 1) == 1 && byte == 3);
  CHECK(write(fd, "\n", 1) == 1);
  CHECK(read(leader, &byte, 1) == 1 && byte == '\n');
  return Ok();
}
