// A consumer waits for work with a second lock held that the producer needs
// before it can tell of any.
#include <pthread.h>

enum { kItems = 20 };

static pthread_mutex_t state = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t queue = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static int items;

static void* Consume(void* unused) {
  for (int i = 0; i < kItems; ++i) {
    pthread_mutex_lock(&state);  // holds state
    pthread_mutex_lock(&queue);
    while (items == 0) {
      pthread_cond_wait(&filled, &queue);  // wants filled
    }
    --items;
    pthread_mutex_unlock(&queue);
    pthread_mutex_unlock(&state);
  }
  return unused;
}

static void* Produce(void* unused) {
  for (int i = 0; i < kItems; ++i) {
    pthread_mutex_lock(&state);  // wants state
    pthread_mutex_unlock(&state);
    pthread_mutex_lock(&queue);
    ++items;
    pthread_cond_signal(&filled);
    pthread_mutex_unlock(&queue);
  }
  return unused;
}

int main(void) {
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, Consume, NULL);
  pthread_create(&threads[1], NULL, Produce, NULL);
  for (int i = 0; i < 2; ++i) {
    pthread_join(threads[i], NULL);
  }
  return 0;
}
