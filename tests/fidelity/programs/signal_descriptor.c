// Signals are read from a descriptor, which is ready when one is there:
// signalfd(2), poll(2).
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>

#include "check.h"

int main(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  sigaddset(&set, SIGUSR2);
  CHECK(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
  const int fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
  struct signalfd_siginfo info;
  CHECK(fd >= 0);
  CHECK_FAILS(read(fd, &info, sizeof(info)), EAGAIN);
  CHECK(kill(getpid(), SIGUSR2) == 0);
  struct pollfd ready = {.fd = fd, .events = POLLIN};
  CHECK(poll(&ready, 1, -1) == 1 && ready.revents == POLLIN);
  CHECK(read(fd, &info, sizeof(info)) == sizeof(info));
  CHECK(info.ssi_signo == SIGUSR2 && info.ssi_pid == (unsigned)getpid());
  CHECK_FAILS(read(fd, &info, sizeof(info)), EAGAIN);
  return Ok();
}
