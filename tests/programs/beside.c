// Two threads race while the first one looks at results of calls, which have
// nothing to do with the race; given "mixed", it adds what they race for.
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { kThreads = 2, kRounds = 2000, kCalls = 20 };

static volatile long counter;
static volatile long large;

static void* Race(void* unused) {
  for (int i = 0; i < kRounds; ++i) {
    counter = counter + 1;
  }
  return unused;
}

int main(int argc, char** argv) {
  const int mixed = argc > 1 && strcmp(argv[1], "mixed") == 0;
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i) {
    pthread_create(&threads[i], NULL, Race, NULL);
  }
  for (int i = 0; i < kCalls; ++i) {
    const long result = syscall(SYS_getppid) + (mixed ? counter : 0);
    if (result > 1000000000) {
      large = large + 1;
    }
  }
  for (int i = 0; i < kThreads; ++i) {
    pthread_join(threads[i], NULL);
  }
  printf("%ld\n", large);
  return 0;
}
