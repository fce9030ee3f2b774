// A lock of the program's own, by LOCK CMPXCHG, guards one counter; the other
// one is changed before it is taken.
#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { kRounds = 40 };

static atomic_int word;
static volatile long inside;
static volatile long outside;

static void Lock(void) {
  int free = 0;
  while (!atomic_compare_exchange_strong(&word, &free, 1)) {
    free = 0;
    sched_yield();
  }
}

static void Unlock(void) {
  atomic_store_explicit(&word, 0, memory_order_release);
}

static void* Count(void* unused) {
  for (int i = 0; i < kRounds; ++i) {
    const long seen = outside;  // race
    outside = seen + 1;         // race
    Lock();
    inside = inside + 1;
    Unlock();
  }
  return unused;
}

int main(void) {
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) {
    pthread_create(&threads[i], NULL, Count, NULL);
  }
  for (int i = 0; i < 2; ++i) {
    pthread_join(threads[i], NULL);
  }
  assert(inside == 2 * kRounds);
  assert(outside == 2 * kRounds);
  return 0;
}
