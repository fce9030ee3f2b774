// An ordinary bounded queue, right in itself: a lock and two condition
// variables, producers and consumers. Statistics are kept without the lock.
#include <assert.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kSlots = 4, kProducers = 3, kConsumers = 2 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER;
static pthread_cond_t not_full = PTHREAD_COND_INITIALIZER;
static unsigned slots[kSlots];
static int count, head, tail, over;
static volatile long served;
static int items = 20;

static unsigned Work(unsigned x) {
  for (int i = 0; i < 50; ++i) {
    x = x * 1664525u + 1013904223u;
  }
  return x;
}

static void* Produce(void* id) {
  for (int i = 0; i < items; ++i) {
    const unsigned item = Work((unsigned)i + (unsigned)(long)id);
    pthread_mutex_lock(&lock);
    while (count == kSlots) {
      pthread_cond_wait(&not_full, &lock);
    }
    slots[tail] = item;
    tail = (tail + 1) % kSlots;
    ++count;
    pthread_cond_signal(&not_empty);
    pthread_mutex_unlock(&lock);
  }
  return NULL;
}

static void Serve(unsigned item) {
  char* page = malloc(64 + item % 200);
  memset(page, (int)item, 64);
  Work(item);
  free(page);
  const long seen = served;
  served = seen + 1;  // RACY-WRITE: served
}

static void* Consume(void* unused) {
  for (;;) {
    pthread_mutex_lock(&lock);
    while (count == 0 && !over) {
      pthread_cond_wait(&not_empty, &lock);
    }
    if (count == 0) {
      pthread_mutex_unlock(&lock);
      return unused;
    }
    const unsigned item = slots[head];
    head = (head + 1) % kSlots;
    --count;
    pthread_cond_signal(&not_full);
    pthread_mutex_unlock(&lock);
    Serve(item);
  }
}

int main(int argc, char** argv) {
  if (argc > 1) {
    items = atoi(argv[1]);
  }
  pthread_t producers[kProducers], consumers[kConsumers];
  for (long i = 0; i < kProducers; ++i) {
    pthread_create(&producers[i], NULL, Produce, (void*)i);
  }
  for (int i = 0; i < kConsumers; ++i) {
    pthread_create(&consumers[i], NULL, Consume, NULL);
  }
  for (int i = 0; i < kProducers; ++i) {
    pthread_join(producers[i], NULL);
  }
  pthread_mutex_lock(&lock);
  over = 1;
  pthread_cond_broadcast(&not_empty);
  pthread_mutex_unlock(&lock);
  for (int i = 0; i < kConsumers; ++i) {
    pthread_join(consumers[i], NULL);
  }
  assert(served == (long)kProducers * items);
  puts("EXIT-SUCCESS");
  return 0;
}
