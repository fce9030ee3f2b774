// racey with evidence: two reads and a write a round at addresses that depend
// on racy values, and a branch for each of the lowest bits of what was read.
//
// After: M. D. Hill, M. Xu, "Racey: a stress test for deterministic execution"
// (2009).
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { kWords = 64, kThreads = 3 };

static volatile unsigned words[kWords];
static volatile unsigned seen_bits[kThreads];
static int rounds = 60;
static int bits = 2;

static unsigned Mix(unsigned a, unsigned b) {
  const unsigned x = (a ^ (b << 7 | b >> 25)) * 2654435761u;
  return x ^ x >> 15;
}

static unsigned Told(unsigned value, long id) {
  for (int i = 0; i < bits; ++i) {
    if (value >> i & 1) {
      ++seen_bits[id];
    }
  }
  return value;
}

static void* Stir(void* argument) {
  const long id = (long)argument;
  unsigned number = (unsigned)id + 1;
  for (int i = 0; i < rounds; ++i) {
    number = Mix(number, Told(words[number % kWords], id));
    const unsigned slot = number % kWords;
    number = Mix(number, Told(words[slot], id));
    words[slot] = number;  // RACY-WRITE: words
    assert(number % 256 != 5);
  }
  return NULL;
}

int main(int argc, char** argv) {
  if (argc > 1) {
    rounds = atoi(argv[1]);
  }
  if (argc > 2) {
    bits = atoi(argv[2]);
  }
  for (unsigned i = 0; i < kWords; ++i) {
    words[i] = i;
  }
  pthread_t threads[kThreads];
  for (long i = 0; i < kThreads; ++i) {
    pthread_create(&threads[i], NULL, Stir, (void*)i);
  }
  for (int i = 0; i < kThreads; ++i) {
    pthread_join(threads[i], NULL);
  }
  puts("EXIT-SUCCESS");
  return 0;
}
