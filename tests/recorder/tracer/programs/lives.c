// Makes threads and processes, and prints what came of them.
#define _GNU_SOURCE
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kThreads = 8, kMany = 5000, kProcesses = 4 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long sum;

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
  }
  printf("%ld\n", sum);
  return 0;
}
