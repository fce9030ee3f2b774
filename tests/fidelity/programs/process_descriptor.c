// A child is known by a descriptor: signalled, waited for and ready when it has
// ended: pidfd_open(2), pidfd_send_signal(2), waitid(2) with P_PIDFD.
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "check.h"

int main(void) {
  const pid_t child = fork();
  if (child == 0) {
    for (;;) {
      pause();
    }
  }
  const int fd = (int)syscall(SYS_pidfd_open, child, 0);
  CHECK(fd >= 0);
  struct pollfd ready = {.fd = fd, .events = POLLIN};
  CHECK(poll(&ready, 1, 0) == 0);
  CHECK(syscall(SYS_pidfd_send_signal, fd, SIGTERM, NULL, 0) == 0);
  CHECK(poll(&ready, 1, -1) == 1);
  siginfo_t info = {0};
  CHECK(waitid((idtype_t)3, (id_t)fd, &info, WEXITED) == 0);
  CHECK(info.si_pid == child && info.si_code == CLD_KILLED);
  CHECK(info.si_status == SIGTERM);
  return Ok();
}
