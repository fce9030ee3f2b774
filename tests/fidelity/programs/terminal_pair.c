// What is written to the one side is read as a line on the other, with echo,
// and control-C is a signal there: pty(7), termios(3).
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>

#include "check.h"

int main(void) {
  const int leader = posix_openpt(O_RDWR | O_NOCTTY);
  if (leader < 0) {
    dprintf(1, "there is no /dev/ptmx\n");
    return 77;
  }
  char name[64];
  CHECK(grantpt(leader) == 0 && unlockpt(leader) == 0);
  CHECK(ptsname_r(leader, name, sizeof(name)) == 0);
  const int fd = open(name, O_RDWR | O_NOCTTY);
  CHECK(fd >= 0 && isatty(fd) == 1);
  CHECK(write(leader,
              "ab\x7f"
              "c\n",
              5) == 5);
  char text[32] = "";
  CHECK(read(fd, text, sizeof(text)) == 3 && memcmp(text, "ac\n", 3) == 0);
  const struct winsize size = {.ws_row = 24, .ws_col = 80};
  struct winsize told;
  CHECK(ioctl(leader, TIOCSWINSZ, &size) == 0);
  CHECK(ioctl(fd, TIOCGWINSZ, &told) == 0 && told.ws_col == 80);
  CHECK(tcflush(leader, TCIFLUSH) == 0);
  return Ok();
}
