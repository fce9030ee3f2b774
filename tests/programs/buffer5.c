// A bounded buffer of five threads that index an array in another order than
// they came: slots are claimed by an atomic counter and filled without a lock.
// Two producers may wait for one slot and both fill it; then an item is lost,
// and a consumer waits until it gives up.
#include <assert.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

enum { kSlots = 8, kProducers = 3, kConsumers = 2, kSpinsMax = 20000 };

static volatile int slots[kSlots];
static volatile int full[kSlots];
static unsigned put_at, take_at;
static int items = 16;  // of each producer; a multiple of kConsumers

static void WaitFor(unsigned at, int state) {
  for (int spins = 0; full[at] != state; ++spins) {
    assert(spins < kSpinsMax);
  }
}

static void* Put(void* id) {
  for (int i = 0; i < items; ++i) {
    const unsigned at =
        __atomic_fetch_add(&put_at, 1, __ATOMIC_SEQ_CST) % kSlots;
    WaitFor(at, 0);
    slots[at] = (int)(long)id * 1000 + i + 1;  // RACY-WRITE: slots
    full[at] = 1;
  }
  return NULL;
}

static void* Take(void* unused) {
  for (int i = 0; i < items * kProducers / kConsumers; ++i) {
    const unsigned at =
        __atomic_fetch_add(&take_at, 1, __ATOMIC_SEQ_CST) % kSlots;
    WaitFor(at, 1);
    const int item = slots[at];
    assert(item != 0);
    slots[at] = 0;
    full[at] = 0;
  }
  return unused;
}

int main(int argc, char** argv) {
  if (argc > 1) {
    items = atoi(argv[1]);
  }
  pthread_t producers[kProducers], consumers[kConsumers];
  for (long i = 0; i < kProducers; ++i) {
    pthread_create(&producers[i], NULL, Put, (void*)i);
  }
  for (int i = 0; i < kConsumers; ++i) {
    pthread_create(&consumers[i], NULL, Take, NULL);
  }
  for (int i = 0; i < kProducers; ++i) {
    pthread_join(producers[i], NULL);
  }
  for (int i = 0; i < kConsumers; ++i) {
    pthread_join(consumers[i], NULL);
  }
  puts("EXIT-SUCCESS");
  return 0;
}
