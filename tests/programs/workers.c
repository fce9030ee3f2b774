// A server in small: forks workers, which run no program of their own, and
// waits for them. By its argument:
//   calm   all of them end well
//   abort  two threads of the second worker come to a barrier, and one aborts
//   nested the same in a child of the second worker
// Ends with exit status 0 whatever became of them.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kWorkers = 3, kFailing = 1 };

static pthread_barrier_t barrier;
static volatile long total;

static void* Work(void* aborts) {
  for (int i = 0; i < 1000; ++i) {
    __atomic_add_fetch(&total, 1, __ATOMIC_RELAXED);
  }
  pthread_barrier_wait(&barrier);
  if (aborts != NULL) {
    abort();
  }
  return NULL;
}

static int InTwoThreads(void* aborts) {
  pthread_t threads[2];
  pthread_barrier_init(&barrier, NULL, 2);
  pthread_create(&threads[0], NULL, Work, NULL);
  pthread_create(&threads[1], NULL, Work, aborts);
  pthread_join(threads[0], NULL);
  pthread_join(threads[1], NULL);
  return total == 2000 ? 0 : 1;
}

static int Nested(void) {
  const pid_t child = fork();
  if (child == 0) {
    _exit(InTwoThreads(&barrier));
  }
  waitpid(child, NULL, 0);
  return 0;
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  pid_t workers[kWorkers];
  for (int i = 0; i < kWorkers; ++i) {
    workers[i] = fork();
    if (workers[i] == 0) {
      const int fails = i == kFailing && strcmp(what, "calm") != 0;
      _exit(fails && strcmp(what, "nested") == 0
                ? Nested()
                : InTwoThreads(fails ? &barrier : NULL));
    }
  }
  for (int i = 0; i < kWorkers; ++i) {
    waitpid(workers[i], NULL, 0);
  }
  return 0;
}
