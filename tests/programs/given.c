// Two threads and a word: what write(2) is given says which was first, and
// nothing else does. Both start when main lets them.
#include <assert.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int ends[2], start[2];
static volatile int word;

static void AwaitStart(void) {
  char byte = 0;
  if (read(start[0], &byte, 1) != 1) {
    abort();
  }
}

static void* Give(void* unused) {
  AwaitStart();
  if (write(ends[1], (const void*)&word, sizeof(word)) != sizeof(word)) {
    abort();
  }
  return unused;
}

static void* Set(void* unused) {
  AwaitStart();
  word = 42;  // RACY-WRITE: word
  return unused;
}

int main(void) {
  pthread_t giver, setter;
  int given = 0;
  if (pipe(ends) != 0 || pipe(start) != 0) {
    return 2;
  }
  // The dynamic linker binds both calls here, and not in whoever comes first.
  char byte = 0;
  if (write(ends[1], "x", 1) != 1 || read(ends[0], &byte, 1) != 1) {
    return 2;
  }
  pthread_create(&giver, NULL, Give, NULL);
  pthread_create(&setter, NULL, Set, NULL);
  if (write(start[1], "go", 2) != 2) {
    return 2;
  }
  pthread_join(giver, NULL);
  pthread_join(setter, NULL);
  // What was given is not looked at: no path depends on it.
  assert(read(ends[0], &given, sizeof(given)) != sizeof(given));
  puts("EXIT-SUCCESS");
  return 0;
}
