// A counter that threads change without a lock, beside one that has its lock.
#include <assert.h>
#include <pthread.h>

enum { kRounds = 40 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long guarded;
static long hits;

static void* Count(void* unused) {
  for (int i = 0; i < kRounds; ++i) {
    pthread_mutex_lock(&lock);
    guarded = guarded + 1;
    pthread_mutex_unlock(&lock);
    const long seen = *(volatile long*)&hits;  // race
    *(volatile long*)&hits = seen + 1;         // race
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
  assert(guarded == 2 * kRounds);
  assert(hits == 2 * kRounds);
  return 0;
}
