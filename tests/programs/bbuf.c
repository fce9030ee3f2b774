// Bounded buffer with a stolen wake-up. A consumer that was woken takes an item
// without looking again whether there is one ("if" where "while" belongs);
// another consumer may have come first and taken it.
//
// After the bounded buffer of the CLAP and H3 evaluations (PLDI 2013, CAV 2017)
// and Lampson, Redell, "Experience with processes and monitors in Mesa" (1980).
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

enum { kSlots = 2, kConsumers = 2, kItemsEach = 6 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER;
static pthread_cond_t not_full = PTHREAD_COND_INITIALIZER;
static int items[kSlots];
static int count, head, tail;

static void Put(int item) {
  pthread_mutex_lock(&lock);
  while (count == kSlots) {
    pthread_cond_wait(&not_full, &lock);
  }
  items[tail] = item;
  tail = (tail + 1) % kSlots;
  ++count;
  pthread_cond_signal(&not_empty);
  pthread_mutex_unlock(&lock);
}

static int Take(void) {
  pthread_mutex_lock(&lock);
  if (count == 0) {  // the bug: should be while
    pthread_cond_wait(&not_empty, &lock);
  }
  --count;  // RACY-WRITE: count
  assert(count >= 0);
  int item = items[head];
  head = (head + 1) % kSlots;
  pthread_cond_signal(&not_full);
  pthread_mutex_unlock(&lock);
  return item;
}

static void* Consume(void* start) {
  long sum = (long)start;
  for (int i = 0; i < kItemsEach; ++i) {
    sum += Take();
  }
  return (void*)sum;
}

int main(void) {
  pthread_t consumers[kConsumers];
  for (int i = 0; i < kConsumers; ++i) {
    pthread_create(&consumers[i], NULL, Consume, NULL);
  }
  for (int i = 0; i < kConsumers * kItemsEach; ++i) {
    Put(i);
  }
  for (int i = 0; i < kConsumers; ++i) {
    pthread_join(consumers[i], NULL);
  }
  puts("EXIT-SUCCESS");
  return 0;
}
