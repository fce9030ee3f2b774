// Order by a pipe alone: the reader may look at the data because the writer's
// byte has come through. Nothing on either path depends on the data but an
// assertion that fails always.
#include <assert.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int ends[2];
static volatile int data, copy;

static void* Write(void* unused) {
  data = 42;
  const char byte = 1;
  if (write(ends[1], &byte, 1) != 1) {
    abort();
  }
  data = 43;  // RACY-WRITE: data
  return unused;
}

static void* Read(void* unused) {
  char byte = 0;
  if (read(ends[0], &byte, 1) != 1) {
    abort();
  }
  copy = data;
  return unused;
}

int main(void) {
  if (pipe(ends) != 0) {
    return 1;
  }
  pthread_t reader, writer;
  pthread_create(&reader, NULL, Read, NULL);
  pthread_create(&writer, NULL, Write, NULL);
  pthread_join(writer, NULL);
  pthread_join(reader, NULL);
  assert(copy == 0);
  puts("EXIT-SUCCESS");
  return 0;
}
