// One thread closes a descriptor that another one still reads from.
#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

enum { kRounds = 30 };

static int source;

static void* Read(void* unused) {
  for (int i = 0; i < kRounds; ++i) {
    char byte;
    const ssize_t got = read(source, &byte, 1);  // race
    assert(got == 1);
  }
  return unused;
}

static void* Shut(void* unused) {
  for (volatile int i = 0; i < 300; ++i) {
  }
  close(source);  // race
  return unused;
}

int main(void) {
  source = open("/dev/zero", O_RDONLY);
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, Read, NULL);
  pthread_create(&threads[1], NULL, Shut, NULL);
  for (int i = 0; i < 2; ++i) {
    pthread_join(threads[i], NULL);
  }
  return 0;
}
