// Uses futex(2) as its argument says; exits with 0 if the kernel did what its
// manual says.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { kThreads = 3 };

static atomic_uint from;
static atomic_uint to;
static atomic_int count_waiting;
static atomic_int count_awake;

static void Check(int holds, const char* what) {
  if (!holds) {
    fprintf(stderr, "futexes: not so: %s\n", what);
    exit(1);
  }
}

static long Futex(atomic_uint* word, int command, unsigned value,
                  uintptr_t limit, atomic_uint* other, unsigned last) {
  return syscall(SYS_futex, word, command, value, limit, other, last);
}

static void* WaitOnFrom(void* arg) {
  const unsigned bits = (unsigned)(uintptr_t)arg;
  atomic_fetch_add(&count_waiting, 1);
  Check(Futex(&from, FUTEX_WAIT_BITSET, 0, 0, NULL, bits) == 0, "woken");
  atomic_fetch_add(&count_awake, 1);
  return NULL;
}

static void Start(pthread_t* threads, const unsigned* bits) {
  for (int i = 0; i < kThreads; ++i) {
    pthread_create(&threads[i], NULL, WaitOnFrom, (void*)(uintptr_t)bits[i]);
  }
}

static void Join(const pthread_t* threads) {
  for (int i = 0; i < kThreads; ++i) {
    pthread_join(threads[i], NULL);
  }
  Check(atomic_load(&count_awake) == kThreads, "all were woken");
}

// Until `wanted` are woken or moved by calls like this.
static void Repeat(long wanted, int command, unsigned value, uintptr_t limit,
                   atomic_uint* other, unsigned last) {
  long done = 0;
  while (done < wanted) {
    const long result = Futex(&from, command, value, limit, other, last);
    Check(result >= 0, "the call succeeds");
    done += result;
    sched_yield();
  }
  Check(done == wanted, "no more than wanted");
}

static void Requeue(int command) {
  static const unsigned bits[] = {~0u, ~0u, ~0u};
  pthread_t threads[kThreads];
  Check(Futex(&from, FUTEX_CMP_REQUEUE, 1, 1, &to, 7) == -1 && errno == EAGAIN,
        "another value");
  Start(threads, bits);
  Repeat(kThreads, command, 0, 1, &to, 0);  // all are moved
  Check(atomic_load(&count_awake) == 0, "nobody is awake");
  Check(Futex(&to, FUTEX_WAKE, 1, 0, NULL, 0) == 1, "one is woken");
  Check(Futex(&to, FUTEX_REQUEUE, 1, 1, &from, 0) == 2, "one woken, one moved");
  Check(Futex(&from, FUTEX_WAKE, 1, 0, NULL, 0) == 1, "the last is woken");
  Join(threads);
}

static void WakeOp(void) {
  static const unsigned bits[] = {~0u, ~0u, ~0u};
  pthread_t threads[kThreads];
  Start(threads, bits);
  atomic_store(&to, 5);
  Repeat(2, FUTEX_WAKE_OP, 1, 1, &to,
         FUTEX_OP(FUTEX_OP_SET, 6, FUTEX_OP_CMP_LT, 0));
  Check(atomic_load(&to) == 6, "the word is set");
  long woken = 0;
  while (woken == 0) {
    woken = Futex(&to, FUTEX_WAKE_OP, 1, 1, &from,
                  FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_EQ, 0));
    sched_yield();
  }
  Join(threads);
}

static void Bits(void) {
  static const unsigned bits[] = {1, 2, 4};
  pthread_t threads[kThreads];
  Start(threads, bits);
  for (int i = kThreads - 1; i >= 0; --i) {
    Repeat(1, FUTEX_WAKE_BITSET, kThreads, 0, NULL, bits[i]);
    pthread_join(threads[i], NULL);
    Check(atomic_load(&count_awake) == kThreads - i, "only who is meant");
  }
}

// Locks that nobody waits for.
static void Owner(void) {
  pthread_mutex_t mutex;
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
  Check(pthread_mutex_init(&mutex, &attributes) == 0, "there are such locks");
  for (int i = 0; i < 3; ++i) {
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
  }
  Check(Futex(&from, FUTEX_UNLOCK_PI, 0, 0, NULL, 0) == -1 && errno == EPERM,
        "it is not ours");
  Check(Futex(&from, FUTEX_TRYLOCK_PI, 0, 0, NULL, 0) == 0, "it is free");
  Check(atomic_load(&from) == (unsigned)gettid(), "it is ours");
  Check(Futex(&from, FUTEX_UNLOCK_PI, 0, 0, NULL, 0) == 0, "given up");
  Check(atomic_load(&from) == 0, "it is free again");
}

static void* LockOwned(void* arg) {
  pthread_mutex_lock(arg);
  pthread_mutex_unlock(arg);
  return NULL;
}

static void Contend(void) {
  pthread_mutex_t mutex;
  pthread_mutexattr_t attributes;
  pthread_t thread;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
  pthread_mutex_init(&mutex, &attributes);
  pthread_mutex_lock(&mutex);
  pthread_create(&thread, NULL, LockOwned, &mutex);
  sched_yield();
  usleep(1000);
  pthread_mutex_unlock(&mutex);
  pthread_join(thread, NULL);
}

static void Unknown(void) {
  Check(Futex(&from, 112, 0, 0, NULL, 0) == -1 && errno == ENOSYS, "no such");
}

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "";
  if (strcmp(how, "requeue") == 0) {
    Requeue(FUTEX_REQUEUE);
  } else if (strcmp(how, "compare_requeue") == 0) {
    Requeue(FUTEX_CMP_REQUEUE);
  } else if (strcmp(how, "wake_op") == 0) {
    WakeOp();
  } else if (strcmp(how, "bits") == 0) {
    Bits();
  } else if (strcmp(how, "owner") == 0) {
    Owner();
  } else if (strcmp(how, "contend") == 0) {
    Contend();
  } else if (strcmp(how, "unknown") == 0) {
    Unknown();
  } else {
    return 2;
  }
  return 0;
}
