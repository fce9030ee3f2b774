// A sequence lock whose reader forgets to look again: it checks that no write
// was on its way when it began, not whether one came meanwhile.
//
// After: C. Lameter, "Effective synchronization on Linux/NUMA systems" (2005).
#include <assert.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

enum { kReaders = 2 };

static volatile unsigned sequence;
static volatile long low, high;
static int rounds = 30;

static void* Write(void* unused) {
  for (long i = 1; i <= rounds; ++i) {
    ++sequence;
    low = i;
    high = -i;  // RACY-WRITE: high
    ++sequence;
    for (volatile int wait = 0; wait < 10; ++wait) {
    }
  }
  return unused;
}

static void* Read(void* unused) {
  for (int i = 0; i < rounds; ++i) {
    while (sequence % 2 != 0) {
    }
    const long sum = low + high;
    assert(sum == 0);
  }
  return unused;
}

int main(int argc, char** argv) {
  if (argc > 1) {
    rounds = atoi(argv[1]);
  }
  pthread_t writer, readers[kReaders];
  pthread_create(&writer, NULL, Write, NULL);
  for (int i = 0; i < kReaders; ++i) {
    pthread_create(&readers[i], NULL, Read, NULL);
  }
  pthread_join(writer, NULL);
  for (int i = 0; i < kReaders; ++i) {
    pthread_join(readers[i], NULL);
  }
  puts("EXIT-SUCCESS");
  return 0;
}
