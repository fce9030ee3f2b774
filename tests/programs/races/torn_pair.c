// Two values that belong together are written one after the other; a reader
// sees the one without the other. The writer alone takes the lock.
#include <assert.h>
#include <pthread.h>

enum { kRounds = 60 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile long low;
static volatile long high;

static void* Write(void* unused) {
  for (long i = 1; i <= kRounds; ++i) {
    pthread_mutex_lock(&lock);
    low = i;   // race
    high = i;  // race
    pthread_mutex_unlock(&lock);
  }
  return unused;
}

static void* Read(void* unused) {
  for (int i = 0; i < kRounds; ++i) {
    const long first = high;  // race
    const long second = low;  // race
    assert(first == second);
  }
  return unused;
}

int main(void) {
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, Write, NULL);
  pthread_create(&threads[1], NULL, Read, NULL);
  for (int i = 0; i < 2; ++i) {
    pthread_join(threads[i], NULL);
  }
  return 0;
}
