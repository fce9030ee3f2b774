// Writers hold a read-write lock in its read form, which does not keep one from
// the other.
#include <assert.h>
#include <pthread.h>

enum { kRounds = 40 };

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static volatile long total;
static volatile long entries;

static void* Add(void* unused) {
  for (int i = 0; i < kRounds; ++i) {
    pthread_rwlock_rdlock(&lock);
    const long seen = total;  // race
    total = seen + 5;         // race
    pthread_rwlock_unlock(&lock);
    pthread_rwlock_wrlock(&lock);
    entries = entries + 1;
    pthread_rwlock_unlock(&lock);
  }
  return unused;
}

int main(void) {
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) {
    pthread_create(&threads[i], NULL, Add, NULL);
  }
  for (int i = 0; i < 2; ++i) {
    pthread_join(threads[i], NULL);
  }
  assert(entries == 2 * kRounds);
  assert(total == 2 * 5 * kRounds);
  return 0;
}
