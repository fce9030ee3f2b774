// A deterministic-replay stress test: threads mix their signatures through a
// shared array without any lock, so that nearly every order of two accesses
// shows in the result. Fails when the signature is not that of a serial run.
//
// After the structure of M. D. Hill and M. Xu, "racey: a stress test for
// deterministic execution" (2003), written anew.
//
// Usage: racey [iterations [threads]]
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { kElements = 64, kThreadsMax = 8 };

static volatile unsigned m[kElements];
static unsigned signatures[kThreadsMax];
static int iterations = 100;
static int threads = 4;

static unsigned Mix(unsigned a, unsigned b) {
  unsigned x = (a ^ (b << 7 | b >> 25)) * 2654435761u;
  return x ^ x >> 15;
}

static void* Stir(void* id) {
  unsigned num = (unsigned)(long)id + 1;
  for (int i = 0; i < iterations; ++i) {
    num = Mix(num, m[num % kElements]);
    unsigned slot = num % kElements;
    num = Mix(num, m[slot]);
    m[slot] = num;  // RACY-WRITE: m
  }
  signatures[(long)id] = num;
  return NULL;
}

static void Reset(void) {
  for (unsigned i = 0; i < kElements; ++i) {
    m[i] = i;
  }
}

static unsigned Signature(void) {
  unsigned sum = 0;
  for (int i = 0; i < threads; ++i) {
    sum = Mix(sum, signatures[i]);
  }
  return sum;
}

int main(int argc, char** argv) {
  iterations = argc > 1 ? atoi(argv[1]) : iterations;
  threads = argc > 2 ? atoi(argv[2]) : threads;
  assert(iterations >= 0 && threads > 0 && threads <= kThreadsMax);
  Reset();
  for (long i = 0; i < threads; ++i) {
    Stir((void*)i);
  }
  unsigned serial = Signature();
  Reset();
  pthread_t ids[kThreadsMax];
  for (long i = 0; i < threads; ++i) {
    pthread_create(&ids[i], NULL, Stir, (void*)i);
  }
  for (int i = 0; i < threads; ++i) {
    pthread_join(ids[i], NULL);
  }
  assert(Signature() == serial);
  puts("EXIT-SUCCESS");
  return 0;
}
