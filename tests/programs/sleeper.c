// A thread, made first, sleeps while others work: what it does next lies far
// behind what they do now.
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>

enum { kWorkers = 2, kSteps = 200000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long sum;

static void add(unsigned long number) {
  pthread_mutex_lock(&lock);
  sum += number;
  pthread_mutex_unlock(&lock);
}

static void* sleep_and_add(void* unused) {
  const struct timespec meanwhile = {0, 20000000};
  nanosleep(&meanwhile, NULL);
  add(1);
  return unused;
}

static void* work(void* unused) {
  unsigned long number = 1;
  for (int step = 1; step <= kSteps; ++step) {
    number = number * 6364136223846793005u + 1;
    if (step % 10000 == 0) {
      add(number);
    }
  }
  return unused;
}

int main(void) {
  pthread_t threads[kWorkers + 1];
  for (int i = 0; i <= kWorkers; ++i) {
    if (pthread_create(&threads[i], NULL, i == 0 ? sleep_and_add : work,
                       NULL) != 0) {
      return 2;
    }
  }
  for (int i = 0; i <= kWorkers; ++i) {
    pthread_join(threads[i], NULL);
  }
  printf("%lu\n", sum);
  return 0;
}
