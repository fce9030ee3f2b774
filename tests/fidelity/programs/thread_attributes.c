// A thread runs on the stack that it was given, and tells it:
// pthread_attr_setstack(3), pthread_getattr_np(3).
#include <pthread.h>

#include "check.h"

static char stack[1 << 16] __attribute__((aligned(4096)));
static void* Run(void* unused) {
  char here;
  CHECK(&here > stack && &here < stack + sizeof(stack));
  pthread_attr_t about;
  void* address;
  size_t size;
  CHECK(pthread_getattr_np(pthread_self(), &about) == 0);
  CHECK(pthread_attr_getstack(&about, &address, &size) == 0);
  CHECK(address == stack && size == sizeof(stack));
  return unused;
}

int main(void) {
  pthread_attr_t about;
  pthread_t thread;
  CHECK(pthread_attr_init(&about) == 0);
  CHECK(pthread_attr_setstack(&about, stack, sizeof(stack)) == 0);
  CHECK(pthread_create(&thread, &about, Run, NULL) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
  return Ok();
}
