// Threads that take a mutex which gives its owner their priority
// (PTHREAD_PRIO_INHERIT), so that the kernel keeps who has it and who is next:
// by waiting, by trying, and while a signal interrupts the wait. In the end a
// counter that it guards has been raised as often as somebody took it, but for
// one thread that forgets to.
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>

enum { kThreads = 4, kTurns = 12 };

static pthread_mutex_t mutex;
static long raised;

static void Ignore(int number) { (void)number; }

static void Take(long number) {
  if (number % 3 != 0 || pthread_mutex_trylock(&mutex) != 0) {
    pthread_mutex_lock(&mutex);
  }
}

static void* Raise(void* argument) {
  for (long i = 0; i < kTurns; ++i) {
    Take(i);
    const long before = raised;
    for (int wait = 0; wait < 20; ++wait) {
      __asm__ volatile("");
    }
    raised = before + 1;
    pthread_mutex_unlock(&mutex);
  }
  return argument;
}

static void* Forget(void* argument) {
  for (long i = 0; i < kTurns; ++i) {
    raised = raised + 1;
    sched_yield();
  }
  return argument;
}

int main(void) {
  pthread_mutexattr_t about;
  pthread_t threads[kThreads + 1];
  signal(SIGUSR1, Ignore);
  pthread_mutexattr_init(&about);
  pthread_mutexattr_setprotocol(&about, PTHREAD_PRIO_INHERIT);
  pthread_mutex_init(&mutex, &about);
  for (int i = 0; i <= kThreads; ++i) {
    pthread_create(&threads[i], NULL, i == 0 ? Forget : Raise, NULL);
  }
  for (int i = 1; i <= kThreads; ++i) {
    pthread_kill(threads[i], SIGUSR1);
  }
  for (int i = 0; i <= kThreads; ++i) {
    pthread_join(threads[i], NULL);
  }
  if (raised != (kThreads + 1) * kTurns) {
    abort();
  }
  return 0;
}
