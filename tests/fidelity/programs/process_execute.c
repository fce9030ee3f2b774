// A program replaces itself: arguments and environment come through, marked
// descriptors are closed, handlers are gone, the mask stays: execve(2).
#include <fcntl.h>
#include <signal.h>
#include <string.h>

#include "check.h"

static void OnSignal(int number) { (void)number; }

static int Again(char** words) {
  CHECK(strcmp(words[2], "") == 0 && strcmp(words[3], "two words") == 0);
  CHECK(strcmp(getenv("CARRIED"), "yes") == 0 && getenv("PATH") == NULL);
  CHECK(fcntl(30, F_GETFD) == 0);
  CHECK_FAILS(fcntl(31, F_GETFD), EBADF);
  CHECK(signal(SIGUSR1, SIG_DFL) == SIG_DFL);
  CHECK(signal(SIGUSR2, SIG_DFL) == SIG_IGN);
  sigset_t now;
  CHECK(sigprocmask(SIG_BLOCK, NULL, &now) == 0);
  CHECK(sigismember(&now, SIGHUP) == 1 && sigismember(&now, SIGINT) == 0);
  return Ok();
}

int main(int count, char** words) {
  if (count == 4) {
    return Again(words);
  }
  const int fd = open("/dev/null", O_RDONLY);
  CHECK(dup2(fd, 30) == 30 && dup3(fd, 31, O_CLOEXEC) == 31);
  CHECK(signal(SIGUSR1, OnSignal) != SIG_ERR);
  CHECK(signal(SIGUSR2, SIG_IGN) != SIG_ERR);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGHUP);
  CHECK(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
  char* arguments[] = {words[0], "again", "", "two words", NULL};
  char* environment[] = {"CARRIED=yes", NULL};
  execve("/proc/self/exe", arguments, environment);
  CHECK(0);
}
