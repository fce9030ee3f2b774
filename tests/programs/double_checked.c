// Double-checked initialisation without order: the pointer is published before
// the object is filled, and who finds the pointer does not take the lock.
//
// After: "The 'double-checked locking is broken' declaration", D. Bacon et al.
#include <assert.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>

enum { kThreads = 4, kRounds = 4, kReady = 77 };

struct Object {
  volatile int ready;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct Object objects[kRounds];
static struct Object* volatile instances[kRounds];

static struct Object* Instance(int round) {
  if (instances[round] == NULL) {
    pthread_mutex_lock(&lock);
    if (instances[round] == NULL) {
      instances[round] = &objects[round];
      objects[round].ready = kReady;  // RACY-WRITE: ready
    }
    pthread_mutex_unlock(&lock);
  }
  return instances[round];
}

static void* Use(void* unused) {
  for (int round = 0; round < kRounds; ++round) {
    const int ready = Instance(round)->ready;
    assert(ready == kReady);
  }
  return unused;
}

int main(void) {
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i) {
    pthread_create(&threads[i], NULL, Use, NULL);
  }
  for (int i = 0; i < kThreads; ++i) {
    pthread_join(threads[i], NULL);
  }
  puts("EXIT-SUCCESS");
  return 0;
}
