// Files are opened, mapped, read and written by a thread that outlives the
// first one: pthread_exit(3), mmap(2).
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "check.h"

static void* Last(void* first) {
  CHECK(pthread_join((pthread_t)(uintptr_t)first, NULL) == 0);
  const int fd = open("file", O_RDWR | O_CREAT | O_TRUNC, 0600);
  CHECK(fd >= 0);
  CHECK(write(fd, "hello", 5) == 5);
  char* const mapped =
      mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(mapped != MAP_FAILED);
  mapped[0] = 'j';
  CHECK(pwrite(fd, "XY", 2, 1) == 2);
  CHECK(memcmp(mapped, "jXYlo", 5) == 0);
  CHECK(write(fd, "!", 1) == 1);  // where the first write ended
  CHECK(memcmp(mapped, "jXYlo!", 6) == 0);
  exit(Ok());
}

int main(void) {
  pthread_t last;
  CHECK(pthread_create(&last, NULL, Last, (void*)(uintptr_t)pthread_self()) ==
        0);
  pthread_exit(NULL);
}
