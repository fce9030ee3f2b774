// A signal sent to a thread is handled by that one, one sent to the process by
// the thread that does not block it: pthread_kill(3), kill(2).
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>

#include "check.h"

static sem_t handled;
static sem_t done;
static volatile pthread_t by;
static void OnSignal(int number) {
  (void)number;
  by = pthread_self();
  sem_post(&handled);
}

static void* Other(void* unused) {
  while (sem_wait(&done) == -1) {
    CHECK(errno == EINTR);
  }
  return unused;
}

int main(void) {
  CHECK(sem_init(&handled, 0, 0) == 0 && sem_init(&done, 0, 0) == 0);
  CHECK(signal(SIGUSR1, OnSignal) != SIG_ERR);
  pthread_t other;
  CHECK(pthread_create(&other, NULL, Other, NULL) == 0);
  CHECK(pthread_kill(other, SIGUSR1) == 0);
  while (sem_wait(&handled) == -1) {
  }
  CHECK(pthread_equal(by, other));
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  CHECK(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
  by = pthread_self();
  CHECK(kill(getpid(), SIGUSR1) == 0);
  while (sem_wait(&handled) == -1) {
  }
  CHECK(pthread_equal(by, other));
  CHECK(sem_post(&done) == 0 && pthread_join(other, NULL) == 0);
  return Ok();
}
