// The process lives until its last thread ends, whose exit status counts:
// pthread_exit(3).
#include <pthread.h>
#include <stdint.h>

#include "check.h"

static void* Last(void* first) {
  CHECK(pthread_join((pthread_t)(uintptr_t)first, NULL) == 0);
  exit(Ok());
}

int main(void) {
  pthread_t last;
  CHECK(pthread_create(&last, NULL, Last, (void*)(uintptr_t)pthread_self()) ==
        0);
  pthread_exit(NULL);
}
