// Makes threads and processes, and prints what came of them.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kThreads = 8, kMany = 5000, kDetached = 1500, kProcesses = 4 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long sum;
static long ended;

static int CompareLongs(const void* a, const void* b) {
  const long left = *(const long*)a;
  const long right = *(const long*)b;
  return (left > right) - (left < right);
}

// Returns to places in the C library, through pointers, and allocates.
static long Work(long seed) {
  enum { kCount = 200 };
  long* numbers = malloc(kCount * sizeof *numbers);
  for (long i = 0; i < kCount; ++i) {
    numbers[i] = (seed * 7919 + i * 104729) % 1009;
  }
  qsort(numbers, kCount, sizeof *numbers, CompareLongs);
  const long median = numbers[kCount / 2];
  free(numbers);
  return median;
}

static void* Thread(void* argument) {
  for (long i = 0; i < 50; ++i) {
    const long value = Work((long)argument + i);
    pthread_mutex_lock(&mutex);
    sum += value;
    pthread_mutex_unlock(&mutex);
  }
  return NULL;
}

static void* Short(void* argument) {
  __atomic_fetch_add(&sum, (long)argument, __ATOMIC_RELAXED);
  return NULL;
}

static void RunThreads(void) {
  pthread_t threads[kThreads];
  for (long i = 0; i < kThreads; ++i) {
    pthread_create(&threads[i], NULL, Thread, (void*)i);
  }
  for (int i = 0; i < kThreads; ++i) {
    pthread_join(threads[i], NULL);
  }
}

static void RunMany(void) {
  for (long i = 0; i < kMany; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, Short, (void*)i) != 0) {
      printf("no thread\n");
      exit(1);
    }
    pthread_join(thread, NULL);
  }
}

static void* Detached(void* argument) {
  __atomic_fetch_add(&sum, (long)argument, __ATOMIC_RELAXED);
  __atomic_fetch_add(&ended, 1, __ATOMIC_RELEASE);
  return NULL;
}

// Each begins while others end.
static void RunDetached(void) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  for (long i = 0; i < kDetached; ++i) {
    pthread_t thread;
    while (pthread_create(&thread, &attributes, Detached, (void*)i) != 0) {
      sched_yield();
    }
  }
  while (__atomic_load_n(&ended, __ATOMIC_ACQUIRE) != kDetached) {
    sched_yield();
  }
}

static void RunProcesses(void) {
  fflush(stdout);
  for (long i = 0; i < kProcesses; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      _exit((int)(Work(i) % 100));
    }
    int status = 0;
    waitpid(child, &status, 0);
    sum += WEXITSTATUS(status);
  }
}

static void RunPrograms(void) {
  fflush(stdout);
  for (int i = 0; i < kProcesses; ++i) {
    const pid_t child = vfork();
    if (child == 0) {
      execl("/bin/sh", "sh", "-c", "exit 3", NULL);
      _exit(127);
    }
    int status = 0;
    waitpid(child, &status, 0);
    sum += WEXITSTATUS(status);
  }
  char* arguments[] = {"sh", "-c", "echo spawned", NULL};
  pid_t spawned = 0;
  if (posix_spawn(&spawned, "/bin/sh", NULL, NULL, arguments, environ) == 0) {
    waitpid(spawned, NULL, 0);
  }
}

static void* Forker(void* argument) {
  (void)argument;
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      _exit(1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    __atomic_fetch_add(&sum, WEXITSTATUS(status), __ATOMIC_RELAXED);
  }
  return NULL;
}

static void RunBoth(void) {
  pthread_t forker;
  pthread_create(&forker, NULL, Forker, NULL);
  RunThreads();
  pthread_join(forker, NULL);
}

static long Square(long value) { return value * value; }
static long Increment(long value) { return value + 1; }

// What follows runs with AC in RFLAGS: the CPU faults at an operand that is not
// aligned.
static long AlignedWork(long value) {
  static long (*volatile const functions[])(long) = {Square, Increment};
  for (int i = 0; i < 2000; ++i) {
    value = functions[i & 1](value) % 1009;
  }
  return value;
}

static void RunAligned(void) {
  long value = 7;
  asm volatile(
      "subq $128, %%rsp\n\t"
      "pushfq\n\t"
      "orl $0x40000, (%%rsp)\n\t"
      "popfq\n\t"
      "call *%1\n\t"
      "pushfq\n\t"
      "andl $~0x40000, (%%rsp)\n\t"
      "popfq\n\t"
      "addq $128, %%rsp"
      : "+D"(value), "=a"(sum)
      : "r"(AlignedWork)
      : "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "cc", "memory");
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  if (strcmp(what, "threads") == 0) {
    RunThreads();
  } else if (strcmp(what, "many") == 0) {
    RunMany();
  } else if (strcmp(what, "fork") == 0) {
    RunProcesses();
  } else if (strcmp(what, "vfork") == 0) {
    RunPrograms();
  } else if (strcmp(what, "both") == 0) {
    RunBoth();
  } else if (strcmp(what, "aligned") == 0) {
    RunAligned();
  } else if (strcmp(what, "detached") == 0) {
    RunDetached();
  }
  printf("%ld\n", sum);
  return 0;
}
