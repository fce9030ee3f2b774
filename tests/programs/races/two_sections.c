// Stock is looked at in one section of the lock and taken in another one: no
// access is without the lock, and yet the last piece is sold twice.
#include <assert.h>
#include <pthread.h>

enum { kPieces = 40 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int stock = kPieces;

static int InStock(void) {
  pthread_mutex_lock(&lock);
  const int pieces = stock;  // race
  pthread_mutex_unlock(&lock);
  return pieces > 0;
}

static void Sell(void) {
  pthread_mutex_lock(&lock);
  --stock;  // race
  const int pieces = stock;
  pthread_mutex_unlock(&lock);
  assert(pieces >= 0);
}

static void* Shop(void* unused) {
  while (InStock()) {
    Sell();
  }
  return unused;
}

int main(void) {
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) {
    pthread_create(&threads[i], NULL, Shop, NULL);
  }
  for (int i = 0; i < 2; ++i) {
    pthread_join(threads[i], NULL);
  }
  return 0;
}
