// A thread waits for nothing, for a fifth of a second, while another one is
// busy; once that is over, the program fails.
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

enum { kLimitMs = 200, kBytes = 4000 };

static atomic_int is_over;

static void* wait_for_nothing(void* argument) {
  (void)argument;
  struct epoll_event event;
  if (epoll_wait(epoll_create1(0), &event, 1, kLimitMs) == 0) {
    is_over = 1;
  }
  return NULL;
}

int main(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, wait_for_nothing, NULL) != 0) {
    return 2;
  }
  unsigned char* bytes = NULL;
  for (unsigned long i = 0; !is_over; ++i) {
    free(bytes);
    bytes = malloc(kBytes + i % kBytes);
    memset(bytes, (int)i, kBytes);
    for (int at = 1; at < kBytes; ++at) {
      if (bytes[at] % 3 == 1) {
        bytes[at] = (unsigned char)(bytes[at] + bytes[at - 1]);
      }
    }
  }
  pthread_join(thread, NULL);
  abort();
}
