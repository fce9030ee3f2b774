// A child process in the same memory is waited for by its own signal: clone(2),
// CLONE_VM without CLONE_THREAD.
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include "check.h"

static char stack[65536] __attribute__((aligned(16)));
static volatile int written = 0;
static int Child(void* value) {
  written = *(int*)value;
  return 9;
}

int main(void) {
  int value = 8;
  const pid_t child =
      clone(Child, stack + sizeof(stack), CLONE_VM | SIGCHLD, &value);
  int status;
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECK(WEXITSTATUS(status) == 9 && written == 8);
  return Ok();
}
