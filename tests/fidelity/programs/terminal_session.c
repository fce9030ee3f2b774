// A session takes a terminal, its foreground group is told and changed:
// tty_ioctl(4), TIOCSCTTY, tcsetpgrp(3).
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
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
  const pid_t child = fork();
  if (child == 0) {
    CHECK(setsid() == getpid());
    const int fd = open(name, O_RDWR | O_NOCTTY);
    CHECK(ioctl(fd, TIOCSCTTY, 0) == 0);
    CHECK(tcgetpgrp(fd) == getpid() && tcgetsid(fd) == getpid());
    CHECK(signal(SIGTTOU, SIG_IGN) != SIG_ERR);
    const pid_t job = fork();
    if (job == 0) {
      CHECK(setpgid(0, 0) == 0 && tcsetpgrp(fd, getpid()) == 0);
      CHECK(tcgetpgrp(fd) == getpid());
      _exit(0);
    }
    int status;
    CHECK(waitpid(job, &status, 0) == job && status == 0);
    CHECK(tcsetpgrp(fd, getpid()) == 0 && tcgetpgrp(fd) == getpid());
    CHECK(signal(SIGHUP, SIG_IGN) != SIG_ERR);
    _exit(0);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  return Ok();
}
