// Without a writer there is an end of file, without a reader EPIPE and SIGPIPE:
// pipe(7).
#include <signal.h>

#include "check.h"

static volatile sig_atomic_t pipes = 0;
static void OnPipe(int number) { pipes += number == SIGPIPE; }

int main(void) {
  int ends[2];
  char byte;
  CHECK(pipe(ends) == 0);
  CHECK(write(ends[1], "x", 1) == 1 && close(ends[1]) == 0);
  CHECK(read(ends[0], &byte, 1) == 1 && read(ends[0], &byte, 1) == 0);
  CHECK(pipe(ends) == 0);
  CHECK(signal(SIGPIPE, OnPipe) != SIG_ERR);
  CHECK(close(ends[0]) == 0);
  CHECK_FAILS(write(ends[1], "x", 1), EPIPE);
  CHECK(pipes == 1);
  return Ok();
}
