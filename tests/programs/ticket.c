// A hot atomic ticket. Each ticket's parity is a branch, so that a path tells
// one bit of every read; the greatest ticket is kept without a lock.
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { kThreads = 6 };

static long next_ticket;
static volatile long greatest;
static long odd[kThreads];
static int rounds = 40;

static void* Take(void* id) {
  long mine = 0;
  for (int i = 0; i < rounds; ++i) {
    const long ticket = __atomic_fetch_add(&next_ticket, 1, __ATOMIC_RELAXED);
    if (ticket & 1) {
      ++mine;
    }
    if (ticket > greatest) {
      greatest = ticket;  // RACY-WRITE: greatest
    }
  }
  odd[(long)id] = mine;
  return NULL;
}

int main(int argc, char** argv) {
  if (argc > 1) {
    rounds = atoi(argv[1]);
  }
  pthread_t threads[kThreads];
  for (long i = 0; i < kThreads; ++i) {
    pthread_create(&threads[i], NULL, Take, (void*)i);
  }
  long sum = 0;
  for (int i = 0; i < kThreads; ++i) {
    pthread_join(threads[i], NULL);
    sum += odd[i];
  }
  assert(sum == (long)kThreads * rounds / 2);
  assert(greatest == (long)kThreads * rounds - 1);
  puts("EXIT-SUCCESS");
  return 0;
}
