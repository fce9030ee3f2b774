// A thread that handles a signal and then gives up, for the debugger: what each
// thread calls its own, and a handler to stop in.
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

static _Thread_local volatile int mine = 1;
static volatile sig_atomic_t handled;

static void Handle(int signal) {
  handled = signal;  // HANDLED
}

static void* Work(void* value) {
  mine = *(int*)value;
  errno = ERANGE;
  raise(SIGUSR1);
  if (handled == SIGUSR1) {
    abort();
  }
  return value;
}

int main(void) {
  static int value = 42;
  struct sigaction action = {.sa_handler = Handle};
  sigaction(SIGUSR1, &action, NULL);
  mine = 7;
  errno = ENOENT;
  pthread_t worker;
  pthread_create(&worker, NULL, Work, &value);
  pthread_join(worker, NULL);
  return EXIT_SUCCESS;
}
