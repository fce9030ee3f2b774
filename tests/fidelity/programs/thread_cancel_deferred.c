// A thread is cancelled in a call that is a point for it, its cleanup runs, and
// join tells it: pthread_cancel(3).
#include <pthread.h>

#include "check.h"

static int ends[2];
static int cleaned = 0;
static void Clean(void* value) { cleaned += *(int*)value; }
static void* Wait(void* unused) {
  int value = 5;
  char byte;
  pthread_cleanup_push(Clean, &value);
  CHECK(read(ends[0], &byte, 1) == 1);
  pthread_cleanup_pop(0);
  return unused;
}

int main(void) {
  pthread_t thread;
  void* result = NULL;
  CHECK(pipe(ends) == 0);
  CHECK(pthread_create(&thread, NULL, Wait, NULL) == 0);
  CHECK(pthread_cancel(thread) == 0);
  CHECK(pthread_join(thread, &result) == 0);
  CHECK(result == PTHREAD_CANCELED && (cleaned == 5 || cleaned == 0));
  return Ok();
}
