// A signal sent to a thread is handled by that one, one sent to the process by
// the thread that does not block it: pthread_kill(3), kill(2).
#include <pthread.h>
#include <signal.h>

#include "check.h"

static volatile pthread_t by;
static volatile sig_atomic_t handled = 0;
static int done = 0;
static void OnSignal(int number) {
  (void)number;
  by = pthread_self();
  handled = handled + 1;
}

static void* Other(void* unused) {
  while (__atomic_load_n(&done, __ATOMIC_SEQ_CST) == 0) {
  }
  return unused;
}

static void AwaitHandler(int count) {
  while (handled < count) {
  }
}

int main(void) {
  CHECK(signal(SIGUSR1, OnSignal) != SIG_ERR);
  pthread_t other;
  CHECK(pthread_create(&other, NULL, Other, NULL) == 0);
  CHECK(pthread_kill(other, SIGUSR1) == 0);
  AwaitHandler(1);
  CHECK(pthread_equal(by, other));
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  CHECK(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
  by = pthread_self();
  CHECK(kill(getpid(), SIGUSR1) == 0);
  AwaitHandler(2);
  CHECK(pthread_equal(by, other));
  __atomic_store_n(&done, 1, __ATOMIC_SEQ_CST);
  CHECK(pthread_join(other, NULL) == 0);
  return Ok();
}
