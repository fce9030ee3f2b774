// Two threads share one descriptor: each seeks and then reads, and the other
// one has moved the position in between.
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { kRounds = 40 };

static int file;

static void* Read(void* argument) {
  const long place = (long)argument;
  for (int i = 0; i < kRounds; ++i) {
    char byte = 0;
    lseek(file, place, SEEK_SET);              // race
    const ssize_t got = read(file, &byte, 1);  // race
    assert(got == 1);
    assert(byte == 'a' + place);
  }
  return NULL;
}

int main(void) {
  char name[] = "/tmp/shared_position.XXXXXX";
  file = mkstemp(name);
  unlink(name);
  assert(write(file, "abcdefgh", 8) == 8);
  pthread_t threads[2];
  for (long i = 0; i < 2; ++i) {
    pthread_create(&threads[i], NULL, Read, (void*)(i * 5));
  }
  for (int i = 0; i < 2; ++i) {
    pthread_join(threads[i], NULL);
  }
  return 0;
}
