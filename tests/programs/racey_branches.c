// racey with evidence: two reads and a write a round at addresses that depend
// on racy values, and a branch for each of the lowest bits of what was read.
//
// A round in `odds` fails; with 0, none.
//
// Usage: racey_branches [rounds [bits [threads [odds]]]]
//
// After: M. D. Hill, M. Xu, "Racey: a stress test for deterministic execution"
// (2009).
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { kWords = 64, kThreadsMax = 16 };

static volatile unsigned words[kWords];
static volatile unsigned seen_bits[kThreadsMax];
static int rounds = 60;
static int bits = 2;
static unsigned odds = 256;
static int threads = 3;

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
    assert(odds == 0 || number % odds != 5);
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
  if (argc > 3) {
    threads = atoi(argv[3]);
  }
  if (argc > 4) {
    odds = (unsigned)atoi(argv[4]);
  }
  assert(threads <= kThreadsMax);
  for (unsigned i = 0; i < kWords; ++i) {
    words[i] = i;
  }
  pthread_t workers[kThreadsMax];
  for (long i = 0; i < threads; ++i) {
    pthread_create(&workers[i], NULL, Stir, (void*)i);
  }
  for (int i = 0; i < threads; ++i) {
    pthread_join(workers[i], NULL);
  }
  puts("EXIT-SUCCESS");
  return 0;
}
