// Threads whose lives end in the way that the argument names; exits with 0
// once all that can be waited for has ended.
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static pthread_t first;
static sigjmp_buf before;
static atomic_int alive;

static void Check(int holds, const char* what) {
  if (!holds) {
    fprintf(stderr, "lives: not so: %s\n", what);
    exit(1);
  }
}

static void Nap(long ns) {
  const struct timespec nap = {.tv_nsec = ns};
  nanosleep(&nap, NULL);
}

static void* NapAFewTimes(void* arg) {
  for (int i = 0; i < 3; ++i) {
    Nap(1000000);
  }
  return arg;
}

static void Detach(void* (*run)(void*)) {
  pthread_t thread;
  Check(pthread_create(&thread, NULL, run, NULL) == 0, "pthread_create");
  pthread_detach(thread);
}

static void* JoinFirst(void* arg) {
  Check(pthread_join(first, NULL) == 0, "the first thread is joined");
  NapAFewTimes(NULL);
  return arg;
}

static void* CancelFirst(void* arg) {
  void* result = NULL;
  Check(pthread_cancel(first) == 0, "pthread_cancel");
  Check(pthread_join(first, &result) == 0, "the first thread is joined");
  Check(result == PTHREAD_CANCELED, "it was cancelled");
  return arg;
}

static void EndThread(int signal) {
  (void)signal;
  pthread_exit(NULL);
}

static void Jump(int signal) {
  (void)signal;
  siglongjmp(before, 1);
}

static void StartTimer(void (*handler)(int)) {
  const struct itimerval soon = {.it_value = {.tv_usec = 2000}};
  signal(SIGALRM, handler);
  setitimer(ITIMER_REAL, &soon, NULL);
}

static void JumpOutOfAHandler(void) {
  for (volatile int i = 0; i < 3; ++i) {
    if (sigsetjmp(before, 1) == 0) {
      StartTimer(Jump);
      for (;;) {
        pause();
      }
    }
  }
}

// With the words of thread ids that the kernel clears in an own place.
static void* EndOnOwnWord(void* arg) {
  atomic_int* const word = arg;
  atomic_store(word, (int)syscall(SYS_gettid));
  syscall(SYS_set_tid_address, word);
  atomic_fetch_add(&alive, 1);
  while (atomic_load(&alive) < 2) {
    sched_yield();
  }
  Nap(100000);
  syscall(SYS_exit, 0);
  return arg;
}

static void AwaitWord(atomic_int* word) {
  for (int tid = 0; (tid = atomic_load(word)) != 0;) {
    syscall(SYS_futex, word, FUTEX_WAIT, tid, NULL, NULL, 0);
  }
}

static void AwaitWords(void) {
  static atomic_int words[2];
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) {
    pthread_create(&threads[i], NULL, EndOnOwnWord, &words[i]);
  }
  while (atomic_load(&alive) < 2) {
    sched_yield();
  }
  AwaitWord(&words[0]);
  AwaitWord(&words[1]);
}

static void JoinWithLimit(void) {
  pthread_t thread;
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += 100;
  pthread_create(&thread, NULL, NapAFewTimes, NULL);
  Check(pthread_timedjoin_np(thread, NULL, &until) == 0, "it ends in time");
}

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "";
  first = pthread_self();
  if (strcmp(how, "exits_first") == 0) {
    Detach(NapAFewTimes);
    pthread_exit(NULL);
  } else if (strcmp(how, "is_joined") == 0) {
    Detach(JoinFirst);
    pthread_exit(NULL);
  } else if (strcmp(how, "is_cancelled") == 0) {
    Detach(CancelFirst);
    for (;;) {
      pause();
    }
  } else if (strcmp(how, "ends_in_handler") == 0) {
    Detach(JoinFirst);
    StartTimer(EndThread);
    for (;;) {
      pause();
    }
  } else if (strcmp(how, "jumps") == 0) {
    Detach(NapAFewTimes);
    JumpOutOfAHandler();
  } else if (strcmp(how, "own_words") == 0) {
    AwaitWords();
  } else if (strcmp(how, "timed_join") == 0) {
    JoinWithLimit();
  } else {
    return 2;
  }
  return 0;
}
