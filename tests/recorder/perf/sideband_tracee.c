// Makes what a recording of it should tell: THREADS threads, one after another
// named clew-0, clew-1, ..., each of which sleeps SLEEPS times, so that it is
// switched out at least as often. Prints one line per thread, once all have
// ended: its number, and how often the kernel says that it was switched out.
#define _GNU_SOURCE  // RUSAGE_THREAD
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { kThreads = 8, kSleeps = 50 };

struct Report {
  int index;
  long tid;
  long switches;
};

static void* Run(void* argument) {
  struct Report* report = argument;
  char name[16];
  snprintf(name, sizeof(name), "clew-%d", report->index);
  prctl(PR_SET_NAME, name);
  for (int i = 0; i < kSleeps; ++i) {
    const struct timespec nap = {.tv_nsec = 50000};
    nanosleep(&nap, NULL);
  }
  struct rusage usage;
  getrusage(RUSAGE_THREAD, &usage);
  report->tid = syscall(SYS_gettid);
  report->switches = usage.ru_nvcsw + usage.ru_nivcsw;
  return NULL;
}

int main(void) {
  pthread_t threads[kThreads];
  struct Report reports[kThreads];
  for (int i = 0; i < kThreads; ++i) {
    reports[i] = (struct Report){.index = i};
    if (pthread_create(&threads[i], NULL, Run, &reports[i]) != 0) {
      return EXIT_FAILURE;
    }
  }
  for (int i = 0; i < kThreads; ++i) {
    pthread_join(threads[i], NULL);
    printf("%d %ld %ld\n", i, reports[i].tid, reports[i].switches);
  }
  return EXIT_SUCCESS;
}
