// Phases between barriers, with an array that every thread reads in another
// order; one thread does not wait for the second barrier of a phase.
#include <assert.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

enum { kThreads = 4 };

static pthread_barrier_t filled, summed;
static volatile long cells[kThreads];
static int phases = 6;

static long Sum(long from) {
  long sum = 0;
  for (long i = 0; i < kThreads; ++i) {
    sum += cells[(from + i * 3) % kThreads];
  }
  return sum;
}

static void* Work(void* id) {
  const long me = (long)id;
  for (long phase = 1; phase <= phases; ++phase) {
    cells[me] = phase;  // RACY-WRITE: cells
    pthread_barrier_wait(&filled);
    if (me == 0 || phase % 3 != 0) {
      const long sum = Sum(me);
      assert(sum == phase * kThreads);
    }
    if (phase % 3 != 0) {
      pthread_barrier_wait(&summed);
    }
  }
  return NULL;
}

int main(int argc, char** argv) {
  if (argc > 1) {
    phases = atoi(argv[1]);
  }
  pthread_barrier_init(&filled, NULL, kThreads);
  pthread_barrier_init(&summed, NULL, kThreads);
  pthread_t threads[kThreads];
  for (long i = 0; i < kThreads; ++i) {
    pthread_create(&threads[i], NULL, Work, (void*)i);
  }
  for (int i = 0; i < kThreads; ++i) {
    pthread_join(threads[i], NULL);
  }
  puts("EXIT-SUCCESS");
  return 0;
}
