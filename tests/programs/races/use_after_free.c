// A reader follows a pointer to memory that the owner gives back meanwhile.
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

enum { kRounds = 800 };

struct Item {
  long next;
  long stamp;
  long check;
};

static struct Item* volatile current;

static struct Item* Make(long stamp) {
  struct Item* item = malloc(sizeof *item);
  item->stamp = stamp;   // race
  item->check = ~stamp;  // race
  return item;
}

static void* Read(void* unused) {
  for (int i = 0; i < kRounds; ++i) {
    volatile struct Item* item = current;
    const long stamp = item->stamp;  // race
    const long check = item->check;  // race
    assert(stamp == ~check);
  }
  return unused;
}

static void* Renew(void* unused) {
  for (int i = 0; i < kRounds; ++i) {
    struct Item* old = current;
    free(old);                 // race
    current = Make(1000 + i);  // race
  }
  return unused;
}

int main(void) {
  current = Make(1);
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, Read, NULL);
  pthread_create(&threads[1], NULL, Renew, NULL);
  for (int i = 0; i < 2; ++i) {
    pthread_join(threads[i], NULL);
  }
  return 0;
}
