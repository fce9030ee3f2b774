// A spin lock that tests before it sets, and a deposit in sixteen that does
// without it.
//
// Usage: spin_lock [rounds [threads]]
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { kThreadsMax = 16 };

static volatile int taken;
static volatile long balance;
static int rounds = 30;
static int threads = 5;

static void Lock(void) {
  while (taken || __atomic_exchange_n(&taken, 1, __ATOMIC_ACQUIRE)) {
    __builtin_ia32_pause();
  }
}

static void Unlock(void) { __atomic_store_n(&taken, 0, __ATOMIC_RELEASE); }

static void Deposit(void) {
  const long seen = balance;
  for (volatile int wait = 0; wait < 5; ++wait) {
  }
  balance = seen + 1;  // RACY-WRITE: balance
}

static void* Work(void* id) {
  for (int i = 0; i < rounds; ++i) {
    if ((i * 7 + (int)(long)id) % 16 == 0) {
      Deposit();
      continue;
    }
    Lock();
    Deposit();
    Unlock();
  }
  return NULL;
}

int main(int argc, char** argv) {
  if (argc > 1) {
    rounds = atoi(argv[1]);
  }
  if (argc > 2) {
    threads = atoi(argv[2]);
  }
  assert(threads <= kThreadsMax);
  pthread_t workers[kThreadsMax];
  for (long i = 0; i < threads; ++i) {
    pthread_create(&workers[i], NULL, Work, (void*)i);
  }
  for (int i = 0; i < threads; ++i) {
    pthread_join(workers[i], NULL);
  }
  assert(balance == (long)threads * rounds);
  puts("EXIT-SUCCESS");
  return 0;
}
