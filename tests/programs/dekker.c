// Store buffering: each of two threads stores its flag and reads the other's.
// That both read 0 needs delayed stores; here it is only a race to explain.
//
// After: E. W. Dijkstra, "Cooperating sequential processes" (1965), on Dekker's
// algorithm.
#include <assert.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>

enum { kRounds = 6 };

static volatile int flags[2], seen[2];
static pthread_barrier_t start;

static void* Enter(void* id) {
  const long me = (long)id;
  pthread_barrier_wait(&start);
  flags[me] = 1;
  seen[me] = flags[1 - me];
  return NULL;
}

int main(void) {
  for (int i = 0; i < kRounds; ++i) {
    pthread_t threads[2];
    flags[0] = flags[1] = 0;
    pthread_barrier_init(&start, NULL, 2);
    pthread_create(&threads[0], NULL, Enter, (void*)0);
    pthread_create(&threads[1], NULL, Enter, (void*)1);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    assert(seen[0] || seen[1]);
  }
  puts("EXIT-SUCCESS");
  return 0;
}
