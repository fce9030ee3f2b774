// A signal sent to the process is its first thread's, whoever sends it and
// whatever that thread does, unless it blocks the signal: signal(7), kill(2),
// setitimer(2).
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/time.h>

#include "check.h"

enum { kSent = 5 };

static volatile pid_t by[kSent + 2];
static int handled = 0;
static int seen = -1;  // by the first thread, when its handler had returned
static int done = 0;

static void OnSignal(int number) {
  (void)number;
  by[__atomic_load_n(&handled, __ATOMIC_SEQ_CST)] = gettid();
  __atomic_add_fetch(&handled, 1, __ATOMIC_SEQ_CST);
}

static void AwaitSeen(int count) {
  while (__atomic_load_n(&seen, __ATOMIC_SEQ_CST) < count) {
    sched_yield();
  }
}

static void* Send(void* own_number) {
  AwaitSeen(0);  // pthread_create(3) blocks signals for a while
  for (int i = 0; i < kSent; ++i) {
    CHECK(kill(getpid(), SIGUSR1) == 0);
    AwaitSeen(i + 1);
  }
  const struct itimerval soon = {.it_value = {.tv_usec = 1000}};
  CHECK(setitimer(ITIMER_REAL, &soon, NULL) == 0);
  AwaitSeen(kSent + 1);
  *(pid_t*)own_number = gettid();
  __atomic_store_n(&done, 1, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(&done, __ATOMIC_SEQ_CST) == 1) {
    sched_yield();
  }
  CHECK(kill(getpid(), SIGUSR1) == 0);  // which the first blocks by now
  return own_number;
}

int main(void) {
  CHECK(signal(SIGUSR1, OnSignal) != SIG_ERR);
  CHECK(signal(SIGALRM, OnSignal) != SIG_ERR);
  pid_t other_number = 0;
  pthread_t other;
  CHECK(pthread_create(&other, NULL, Send, &other_number) == 0);
  while (__atomic_load_n(&done, __ATOMIC_SEQ_CST) == 0) {
    __atomic_store_n(&seen, __atomic_load_n(&handled, __ATOMIC_SEQ_CST),
                     __ATOMIC_SEQ_CST);
    sched_yield();
  }
  for (int i = 0; i <= kSent; ++i) {
    CHECK(by[i] == getpid());
  }
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  CHECK(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
  __atomic_store_n(&done, 2, __ATOMIC_SEQ_CST);
  CHECK(pthread_join(other, NULL) == 0);
  CHECK(by[kSent + 1] == other_number);
  return Ok();
}
