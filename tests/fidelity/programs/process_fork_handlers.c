// Handlers run around a fork, the first for the parent last: pthread_atfork(3).
#include <pthread.h>
#include <sys/wait.h>

#include "check.h"

static int steps = 0;
static void Step(int digit) { steps = steps * 10 + digit; }
static void Before1(void) { Step(1); }
static void Before2(void) { Step(2); }
static void Parent1(void) { Step(3); }
static void Parent2(void) { Step(4); }
static void Child1(void) { Step(5); }
static void Child2(void) { Step(6); }

int main(void) {
  CHECK(pthread_atfork(Before1, Parent1, Child1) == 0);
  CHECK(pthread_atfork(Before2, Parent2, Child2) == 0);
  const pid_t child = fork();
  if (child == 0) {
    _exit(steps == 2156 ? 0 : 1);
  }
  int status;
  CHECK(steps == 2134);
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  return Ok();
}
