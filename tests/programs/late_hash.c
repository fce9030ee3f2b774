// Evidence that comes late: racy reads go into a hash, and only at the end do
// branches tell some bits of it.
//
// Usage: late_hash [reads [bits [threads]]]
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { kThreadsMax = 16 };

static volatile unsigned shared;
static unsigned signatures[kThreadsMax];
static volatile int told;
static int reads = 12;
static int bits = 6;
static int threads = 3;

static unsigned Mix(unsigned hash, unsigned value) {
  hash = (hash ^ value) * 2654435761u;
  return hash ^ hash >> 15;
}

static void* Read(void* id) {
  unsigned hash = (unsigned)(long)id + 1;
  for (int i = 0; i < reads; ++i) {
    const unsigned seen = shared;
    for (volatile int wait = 0; wait < 20; ++wait) {
    }
    shared = seen + 1;  // RACY-WRITE: shared
    hash = Mix(hash, seen);
  }
  signatures[(long)id] = hash;
  return NULL;
}

int main(int argc, char** argv) {
  if (argc > 1) {
    reads = atoi(argv[1]);
  }
  if (argc > 2) {
    bits = atoi(argv[2]);
  }
  if (argc > 3) {
    threads = atoi(argv[3]);
  }
  assert(threads <= kThreadsMax);
  pthread_t workers[kThreadsMax];
  for (long i = 0; i < threads; ++i) {
    pthread_create(&workers[i], NULL, Read, (void*)i);
  }
  unsigned hash = 0;
  for (int i = 0; i < threads; ++i) {
    pthread_join(workers[i], NULL);
    hash = Mix(hash, signatures[i]);
  }
  for (int i = 0; i < bits; ++i) {
    if (hash >> i & 1) {  // a branch, as told is volatile
      ++told;
    }
  }
  assert(shared == (unsigned)(reads * threads));
  puts("EXIT-SUCCESS");
  return 0;
}
