// A worker begins before what it works on is there.
#include <pthread.h>

struct Plan {
  long steps;
};

static struct Plan* volatile plan;
static struct Plan the_plan = {3};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long started;

static void* Work(void* unused) {
  pthread_mutex_lock(&lock);
  ++started;
  pthread_mutex_unlock(&lock);
  for (volatile int i = 0; i < 40; ++i) {
  }
  struct Plan* mine = plan;  // race
  for (volatile int i = 0; i < 400; ++i) {
  }
  return mine->steps == 3 ? unused : NULL;
}

int main(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, Work, NULL);
  pthread_mutex_lock(&lock);
  ++started;
  pthread_mutex_unlock(&lock);
  plan = &the_plan;  // race
  pthread_join(thread, NULL);
  return 0;
}
