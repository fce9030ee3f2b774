// Two locks, taken in two orders.
#include <pthread.h>

enum { kRounds = 30 };

static pthread_mutex_t left = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t right = PTHREAD_MUTEX_INITIALIZER;
static long moved;

static void* LeftFirst(void* unused) {
  for (int i = 0; i < kRounds; ++i) {
    pthread_mutex_lock(&left);   // holds left
    pthread_mutex_lock(&right);  // wants right
    ++moved;
    pthread_mutex_unlock(&right);
    pthread_mutex_unlock(&left);
  }
  return unused;
}

static void* RightFirst(void* unused) {
  for (int i = 0; i < kRounds; ++i) {
    pthread_mutex_lock(&right);  // holds right
    pthread_mutex_lock(&left);   // wants left
    --moved;
    pthread_mutex_unlock(&left);
    pthread_mutex_unlock(&right);
  }
  return unused;
}

int main(void) {
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, LeftFirst, NULL);
  pthread_create(&threads[1], NULL, RightFirst, NULL);
  for (int i = 0; i < 2; ++i) {
    pthread_join(threads[i], NULL);
  }
  return 0;
}
