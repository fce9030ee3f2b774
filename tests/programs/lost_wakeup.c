// Lost wake-up. The consumer looks for work without the lock and then waits;
// work that comes in between is signalled to nobody. Hangs.
//
// After: Lu, Park, Seo, Zhou, "Learning from mistakes", ASPLOS 2008 (order
// violation, condition variable).
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t has_work = PTHREAD_COND_INITIALIZER;
static volatile int work;
static sem_t done;
static int rounds = 20;

static void* Consume(void* unused) {
  for (int i = 0; i < rounds; ++i) {
    if (work == 0) {  // the bug: outside of the lock
      pthread_mutex_lock(&lock);
      pthread_cond_wait(&has_work, &lock);
      pthread_mutex_unlock(&lock);
    }
    work = 0;
    sem_post(&done);
  }
  return unused;
}

static void* Produce(void* unused) {
  for (int i = 0; i < rounds; ++i) {
    for (volatile int wait = 0; wait < 40; ++wait) {
    }
    pthread_mutex_lock(&lock);
    work = 1;
    pthread_cond_signal(&has_work);
    pthread_mutex_unlock(&lock);
    sem_wait(&done);
  }
  return unused;
}

int main(int argc, char** argv) {
  if (argc > 1) {
    rounds = atoi(argv[1]);
  }
  sem_init(&done, 0, 0);
  pthread_t consumer, producer;
  pthread_create(&consumer, NULL, Consume, NULL);
  pthread_create(&producer, NULL, Produce, NULL);
  pthread_join(consumer, NULL);
  pthread_join(producer, NULL);
  puts("EXIT-SUCCESS");
  return 0;
}
