// A counter of which each access is atomic, but not the two together: a load,
// and a store that is an XCHG; beside it one whose addition is a single step.
// A thread's clock is made of its id, which the kernel wrote before it ran.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum { kRounds = 40 };

static atomic_long whole;
static atomic_long hits;

static void* Count(void* unused) {
  clockid_t clock;
  pthread_getcpuclockid(pthread_self(), &clock);  // no race
  for (int i = 0; i < kRounds; ++i) {
    atomic_fetch_add(&whole, 1);
    const long seen = atomic_load(&hits);  // race
    atomic_store(&hits, seen + 1);         // race
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
  assert(whole == 2 * kRounds);
  assert(hits == 2 * kRounds);
  return 0;
}
