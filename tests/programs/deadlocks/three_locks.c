// Three who sit at a round table, with a fork to the left and the right of
// each.
#include <pthread.h>

enum { kRounds = 60 };

static pthread_mutex_t north = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t east = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t west = PTHREAD_MUTEX_INITIALIZER;

static void Think(void) {
  for (volatile int i = 0; i < 5; ++i) {
  }
}

static void* First(void* unused) {
  for (int i = 0; i < kRounds; ++i) {
    pthread_mutex_lock(&north);  // holds north
    Think();
    pthread_mutex_lock(&east);  // wants east
    pthread_mutex_unlock(&east);
    pthread_mutex_unlock(&north);
  }
  return unused;
}

static void* Second(void* unused) {
  for (int i = 0; i < kRounds; ++i) {
    pthread_mutex_lock(&east);  // holds east
    Think();
    pthread_mutex_lock(&west);  // wants west
    pthread_mutex_unlock(&west);
    pthread_mutex_unlock(&east);
  }
  return unused;
}

static void* Third(void* unused) {
  for (int i = 0; i < kRounds; ++i) {
    pthread_mutex_lock(&west);  // holds west
    Think();
    pthread_mutex_lock(&north);  // wants north
    pthread_mutex_unlock(&north);
    pthread_mutex_unlock(&west);
  }
  return unused;
}

int main(void) {
  void* (*const all[3])(void*) = {First, Second, Third};
  pthread_t threads[3];
  for (int i = 0; i < 3; ++i) {
    pthread_create(&threads[i], NULL, all[i], NULL);
  }
  for (int i = 0; i < 3; ++i) {
    pthread_join(threads[i], NULL);
  }
  return 0;
}
