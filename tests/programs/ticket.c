// A hot atomic ticket. Each ticket's parity is a branch, so that a path tells
// one bit of every read; the greatest ticket is kept without a lock.
//
// Usage: ticket [rounds [threads]]
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { kThreadsMax = 16 };

static long next_ticket;
static volatile long greatest;
static long odd[kThreadsMax];
static int rounds = 40;
static int threads = 6;

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
  if (argc > 2) {
    threads = atoi(argv[2]);
  }
  assert(threads <= kThreadsMax);
  pthread_t workers[kThreadsMax];
  for (long i = 0; i < threads; ++i) {
    pthread_create(&workers[i], NULL, Take, (void*)i);
  }
  long sum = 0;
  for (int i = 0; i < threads; ++i) {
    pthread_join(workers[i], NULL);
    sum += odd[i];
  }
  assert(sum == (long)threads * rounds / 2);
  assert(greatest == (long)threads * rounds - 1);
  puts("EXIT-SUCCESS");
  return 0;
}
