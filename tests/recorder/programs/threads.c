// Four threads add to a counter under a lock; prints the sum.
#include <pthread.h>
#include <stdio.h>

enum { kThreads = 4, kRounds = 500 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long sum;

static void* Work(void* unused) {
  for (int i = 0; i < kRounds; ++i) {
    pthread_mutex_lock(&lock);
    ++sum;
    pthread_mutex_unlock(&lock);
  }
  return unused;
}

int main(void) {
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i) {
    pthread_create(&threads[i], NULL, Work, NULL);
  }
  for (int i = 0; i < kThreads; ++i) {
    pthread_join(threads[i], NULL);
  }
  printf("%ld\n", sum);
  return sum == kThreads * kRounds ? 0 : 1;
}
