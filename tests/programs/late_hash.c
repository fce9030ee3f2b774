// Evidence that comes late: racy reads go into a hash, and only at the end do
// branches tell some bits of it.
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { kThreads = 3 };

static volatile unsigned shared;
static unsigned signatures[kThreads];
static volatile int told;
static int reads = 12;
static int bits = 6;

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
  pthread_t threads[kThreads];
  for (long i = 0; i < kThreads; ++i) {
    pthread_create(&threads[i], NULL, Read, (void*)i);
  }
  unsigned hash = 0;
  for (int i = 0; i < kThreads; ++i) {
    pthread_join(threads[i], NULL);
    hash = Mix(hash, signatures[i]);
  }
  for (int i = 0; i < bits; ++i) {
    told += hash >> i & 1 ? 1 : 2;
  }
  assert(shared == (unsigned)(reads * kThreads));
  puts("EXIT-SUCCESS");
  return 0;
}
