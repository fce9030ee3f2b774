// A counter in a file: read through a shared mapping, written with pwrite. The
// update is not locked, so that one may be lost.
#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { kRounds = 40, kBytes = 3 * 4096 };

static int fd;
static volatile unsigned* counter;  // in the second page

static void* Count(void* unused) {
  for (int i = 0; i < kRounds; ++i) {
    const unsigned next = counter[0] + 1;
    if (pwrite(fd, &next, sizeof(next), 4096) != sizeof(next)) {
      abort();
    }
    if (next % 2 == 0) {
      ++counter[1];
    }
  }
  return unused;
}

int main(void) {
  char name[] = "/tmp/clew-mapped-XXXXXX";
  fd = mkstemp(name);
  unlink(name);
  char* file = mmap(NULL, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (ftruncate(fd, kBytes) != 0 || write(fd, "head", 4) != 4) {
    abort();
  }
  counter = (volatile unsigned*)(file + 4096);
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) {
    pthread_create(&threads[i], NULL, Count, NULL);
  }
  for (int i = 0; i < 2; ++i) {
    pthread_join(threads[i], NULL);
  }
  assert(file[0] == 'h' && file[3] == 'd');
  assert(counter[0] == 2 * kRounds);
  puts("EXIT-SUCCESS");
  return 0;
}
