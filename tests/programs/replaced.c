// A thread that is not the first replaces the program by itself, once an execve
// of nothing has failed; the others sleep, compute, and wait for it to end. The
// second program has threads, too.
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

static atomic_int ready;
static int total;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void* Sleep(void* argument) {
  ++ready;
  pause();
  return argument;
}

static void* Compute(void* argument) {
  volatile uint64_t steps = 0;
  ++ready;
  for (;;) {
    ++steps;
  }
  return argument;
}

static void* Replace(void* argument) {
  char* const nothing[] = {"nothing", NULL};
  char* const again[] = {"replaced", "again", NULL};
  while (ready < 2) {
  }
  if (execve("/nowhere", nothing, NULL) != -1 || errno != ENOENT) {
    abort();
  }
  execve("/proc/self/exe", again, NULL);
  return argument;
}

static void* Add(void* argument) {
  for (int i = 0; i < 50; ++i) {
    pthread_mutex_lock(&lock);
    ++total;
    pthread_mutex_unlock(&lock);
  }
  return argument;
}

static int Run(void* (*const bodies[])(void*), int count) {
  pthread_t threads[3];
  for (int i = 0; i < count; ++i) {
    if (pthread_create(&threads[i], NULL, bodies[i], NULL) != 0) {
      return EXIT_FAILURE;
    }
  }
  for (int i = 0; i < count; ++i) {
    pthread_join(threads[i], NULL);
  }
  return EXIT_SUCCESS;
}

int main(int count, char** arguments) {
  (void)arguments;
  if (count == 1) {
    void* (*const bodies[])(void*) = {Sleep, Compute, Replace};
    return Run(bodies, 3);  // does not return
  }
  void* (*const bodies[])(void*) = {Add, Add};
  return Run(bodies, 2) == EXIT_SUCCESS && total == 100 ? EXIT_SUCCESS
                                                        : EXIT_FAILURE;
}
