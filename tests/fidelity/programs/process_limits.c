// A limit holds: of a file's size with SIGXFSZ, and of open files:
// setrlimit(2), prlimit(2).
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>

#include "check.h"

static volatile sig_atomic_t told = 0;
static void OnSignal(int number) { told += number == SIGXFSZ; }

int main(void) {
  CHECK(signal(SIGXFSZ, OnSignal) != SIG_ERR);
  struct rlimit limit = {10, 10};
  const int fd = open("file", O_WRONLY | O_CREAT, 0600);
  CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
  CHECK(write(fd, "0123456789ab", 12) == 10);
  CHECK_FAILS(write(fd, "x", 1), EFBIG);
  CHECK(told == 1);
  struct rlimit seen;
  CHECK(prlimit(0, RLIMIT_FSIZE, NULL, &seen) == 0 && seen.rlim_cur == 10);
  const struct rlimit files = {(rlim_t)fd + 1, 1000};
  CHECK(setrlimit(RLIMIT_NOFILE, &files) == 0);
  CHECK_FAILS(dup(fd), EMFILE);
  return Ok();
}
