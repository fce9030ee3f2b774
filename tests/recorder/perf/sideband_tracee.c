// Makes what a recording of it should tell: THREADS threads, one after another
// named clew-0, clew-1, ..., each of which sleeps until the kernel has switched
// it out kSwitches times; a nap whose timer fires early makes no switch. Prints
// one line per thread, once all have ended: its number, its thread id, and how
// often the kernel says that it was switched out.
#define _GNU_SOURCE  // RUSAGE_THREAD
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { kThreads = 8, kSwitches = 50 };

struct Report {
  int index;
  long tid;
  long switches;
};

static long Switches(void) {
  struct rusage usage;
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw + usage.ru_nivcsw;
}

static void* Run(void* argument) {
  struct Report* report = argument;
  char name[16];
  snprintf(name, sizeof(name), "clew-%d", report->index);
  prctl(PR_SET_NAME, name);
  while (Switches() < kSwitches) {
    const struct timespec nap = {.tv_nsec = 50000};
    nanosleep(&nap, NULL);
  }
  report->tid = syscall(SYS_gettid);
  report->switches = Switches();
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
