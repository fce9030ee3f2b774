// An ordinary bounded queue, right in itself: a lock and two condition
// variables, producers and consumers. Statistics are kept without the lock.
//
// Usage: queue [items [producers consumers]]
#include <assert.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kSlots = 4, kThreadsMax = 16 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER;
static pthread_cond_t not_full = PTHREAD_COND_INITIALIZER;
static unsigned slots[kSlots];
static int count, head, tail, over;
static volatile long served;
static int items = 20;
static int producers = 3, consumers = 2;

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
  if (argc > 3) {
    producers = atoi(argv[2]);
    consumers = atoi(argv[3]);
  }
  assert(producers <= kThreadsMax && consumers <= kThreadsMax);
  pthread_t produce[kThreadsMax], consume[kThreadsMax];
  for (long i = 0; i < producers; ++i) {
    pthread_create(&produce[i], NULL, Produce, (void*)i);
  }
  for (int i = 0; i < consumers; ++i) {
    pthread_create(&consume[i], NULL, Consume, NULL);
  }
  for (int i = 0; i < producers; ++i) {
    pthread_join(produce[i], NULL);
  }
  pthread_mutex_lock(&lock);
  over = 1;
  pthread_cond_broadcast(&not_empty);
  pthread_mutex_unlock(&lock);
  for (int i = 0; i < consumers; ++i) {
    pthread_join(consume[i], NULL);
  }
  assert(served == (long)producers * items);
  puts("EXIT-SUCCESS");
  return 0;
}
