// Reads memory that it gave back: anonymous memory is zero then, a file's
// contents are there again. A thread's stack is given back, too.
#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static volatile char* anonymous;
static volatile char* of_file;  // private: what was stored there is lost

static void* Store(void* unused) {
  for (int i = 0; i < 2 * 4096; i += 512) {
    anonymous[i] = 1;
  }
  of_file[1] = 'x';
  return unused;
}

int main(void) {
  char name[] = "/tmp/clew-discarded-XXXXXX";
  const int fd = mkstemp(name);
  unlink(name);
  if (write(fd, "file", 4) != 4) {
    abort();
  }
  anonymous = mmap(NULL, 2 * 4096, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  of_file = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
  pthread_t thread;
  pthread_create(&thread, NULL, Store, NULL);
  pthread_join(thread, NULL);
  madvise((void*)anonymous, 4096, MADV_DONTNEED);
  madvise((void*)of_file, 4096, MADV_DONTNEED);
  for (int i = 0; i < 2 * 4096; i += 512) {
    assert(anonymous[i] == (i < 4096 ? 0 : 1));
  }
  assert(of_file[1] == 'i');
  puts("EXIT-SUCCESS");
  return 0;
}
