// A readers-writer lock taken the wrong way: now and then a writer takes it for
// reading only, and a reader sees half of what it writes.
//
// Usage: rwlock [rounds [writers readers]]
#include <assert.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

enum { kThreadsMax = 16, kTotal = 100 };

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static volatile int left = kTotal / 2, right = kTotal / 2;
static int rounds = 24;
static int writers = 2, readers = 3;

static void Move(int sum) {
  left -= sum;
  for (volatile int wait = 0; wait < 3; ++wait) {
  }
  right += sum;
}

static void* Write(void* id) {
  for (int i = 0; i < rounds; ++i) {
    if ((i + (int)(long)id) % 10 == 9) {
      pthread_rwlock_rdlock(&lock);  // the bug
      Move(1);                       // RACY-WRITE: left
    } else {
      pthread_rwlock_wrlock(&lock);
      Move(i % 4 - 1);
    }
    pthread_rwlock_unlock(&lock);
  }
  return NULL;
}

static void* Read(void* unused) {
  for (int i = 0; i < 2 * rounds; ++i) {
    pthread_rwlock_rdlock(&lock);
    int total = left;
    total += right;
    assert(total == kTotal);
    pthread_rwlock_unlock(&lock);
  }
  return unused;
}

int main(int argc, char** argv) {
  if (argc > 1) {
    rounds = atoi(argv[1]);
  }
  if (argc > 3) {
    writers = atoi(argv[2]);
    readers = atoi(argv[3]);
  }
  assert(writers + readers <= kThreadsMax);
  pthread_t threads[kThreadsMax];
  for (long i = 0; i < writers + readers; ++i) {
    pthread_create(&threads[i], NULL, i < writers ? Write : Read, (void*)i);
  }
  for (int i = 0; i < writers + readers; ++i) {
    pthread_join(threads[i], NULL);
  }
  puts("EXIT-SUCCESS");
  return 0;
}
