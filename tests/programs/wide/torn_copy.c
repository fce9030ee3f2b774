// One thread copies records over the shared one while others copy it out, all
// by memcpy, which moves as many bytes at once as the CPU can, and without a
// lock: a copy may be old in one half and new in the other.
#include <assert.h>
#include <pthread.h>
#include <string.h>

enum { kReaders = 2, kRounds = 150, kBytes = 240 };

static char shared[kBytes];
static volatile size_t record_bytes = kBytes;  // so that libc is called

static void* Read(void* argument) {
  (void)argument;
  for (int i = 0; i < kRounds; ++i) {
    char seen[kBytes];
    const size_t bytes = record_bytes;
    memcpy(seen, shared, bytes);
    assert(memcmp(seen, seen + 1, bytes - 1) == 0);
  }
  return NULL;
}

static void* Write(void* argument) {
  (void)argument;
  for (int i = 0; i < kRounds; ++i) {
    char next[kBytes];
    memset(next, 'a' + i % 26, record_bytes);
    memcpy(shared, next, record_bytes);  // RACY-WRITE
  }
  return NULL;
}

int main(void) {
  pthread_t threads[kReaders + 1];
  for (int i = 0; i < kReaders; ++i) {
    pthread_create(&threads[i], NULL, Read, NULL);
  }
  pthread_create(&threads[kReaders], NULL, Write, NULL);
  for (int i = 0; i <= kReaders; ++i) {
    pthread_join(threads[i], NULL);
  }
  return 0;
}
