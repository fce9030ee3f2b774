// Signals of two kinds come so close that some come while the handler of the
// other kind returns: sigreturn(2).
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { kSignals = 300 };

static volatile sig_atomic_t handled;

static void HandleOne(int signal) {
  (void)signal;
  ++handled;
}

static void HandleOther(int signal) {
  (void)signal;
  handled += 1;
}

int main(void) {
  const struct sigaction one = {.sa_handler = HandleOne};
  const struct sigaction other = {.sa_handler = HandleOther};
  CHECK(sigaction(SIGUSR1, &one, NULL) == 0);
  CHECK(sigaction(SIGUSR2, &other, NULL) == 0);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) {
    for (int i = 0; i < kSignals; ++i) {
      CHECK(kill(parent, i % 2 == 0 ? SIGUSR1 : SIGUSR2) == 0);
      usleep(60 + i % 7 * 20);
    }
    _exit(0);
  }
  while (waitpid(child, NULL, WNOHANG) == 0) {
  }
  CHECK(handled > 0 && handled <= kSignals);
  return Ok();
}
