// The shortest race there is: ++counter, which a compiler makes one instruction
// of. Between processors it loses counts; under a recorder that keeps
// instructions whole it does not.
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

enum { kThreads = 4 };

static long counter;
static int rounds = 50;

__attribute__((noinline)) static void Count(void) {
  __asm__ volatile("addq $1, %0" : "+m"(counter));
}

static void* Work(void* unused) {
  for (int i = 0; i < rounds; ++i) {
    Count();
  }
  return unused;
}

int main(int argc, char** argv) {
  if (argc > 1) {
    rounds = atoi(argv[1]);
  }
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i) {
    pthread_create(&threads[i], NULL, Work, NULL);
  }
  for (int i = 0; i < kThreads; ++i) {
    pthread_join(threads[i], NULL);
  }
  puts(counter == (long)kThreads * rounds ? "EXIT-SUCCESS" : "lost");
  return counter == (long)kThreads * rounds ? 0 : 1;
}
