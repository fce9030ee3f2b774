// Who ends a worker waits for its end with the lock that it takes last.
#include <pthread.h>

static pthread_mutex_t workers = PTHREAD_MUTEX_INITIALIZER;
static int ended;

static void* Work(void* unused) {
  for (volatile int i = 0; i < 100; ++i) {
  }
  pthread_mutex_lock(&workers);  // wants workers
  ++ended;
  pthread_mutex_unlock(&workers);
  return unused;
}

int main(void) {
  for (int i = 0; i < 8; ++i) {
    pthread_t thread;
    pthread_create(&thread, NULL, Work, NULL);
    pthread_mutex_lock(&workers);  // holds workers
    pthread_join(thread, NULL);    // wants thread
    pthread_mutex_unlock(&workers);
  }
  return 0;
}
