// Threads change memory in turn, for a while, and one of them fails; the first
// thread has ended by then.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { kThreads = 3, kRounds = 4000, kBytes = 2000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long rounds;
static char* bytes;

static void* change(void* argument) {
  (void)argument;
  for (;;) {
    pthread_mutex_lock(&lock);
    free(bytes);
    bytes = malloc(kBytes + (size_t)rounds % 100);
    memset(bytes, (int)rounds, kBytes);
    for (int at = 1; at < kBytes; ++at) {
      bytes[at] = (char)(bytes[at] + bytes[at - 1]);
    }
    if (++rounds == kRounds) {
      abort();
    }
    pthread_mutex_unlock(&lock);
  }
}

int main(void) {
  for (int i = 0; i < kThreads; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, change, NULL) != 0) {
      return 2;
    }
  }
  pthread_exit(NULL);
}
