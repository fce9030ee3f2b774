// Threads race for words of memory that each of them has at another place: of a
// file, of a segment, of what mremap(2) mapped a second time; and for a word
// over the end of a page behind which the page comes again.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

enum { kPage = 4096, kWords = 4, kIncrements = 40, kBeforeEnd = 4 };

static volatile long* words[2][kWords];  // by thread: the same words
static volatile long odd;

static void Check(int condition) {
  if (!condition) {
    abort();
  }
}

static void* Race(void* own_words) {
  volatile long** const own = own_words;
  for (int i = 0; i < kIncrements; ++i) {
    for (int k = 0; k < kWords; ++k) {
      if ((*own[k] += 1) % 2 != 0) {
        ++odd;
      }
    }
  }
  return NULL;
}

static char* Map(char* at, int more, int fd) {
  char* const addr =
      mmap(at, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | more, fd, 0);
  Check(addr != MAP_FAILED);
  return addr;
}

// One page, again and again.
static char* MapRing(int fd, int pages) {
  char* const ring = mmap(NULL, (size_t)pages * kPage, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  Check(ring != MAP_FAILED);
  for (int i = 0; i < pages; ++i) {
    Map(ring + i * kPage, MAP_FIXED, fd);
  }
  return ring;
}

static int NewFile(void) {
  const int fd = memfd_create("twice", MFD_CLOEXEC);
  Check(fd >= 0 && ftruncate(fd, kPage) == 0);
  return fd;
}

int main(void) {
  const int file = NewFile();
  words[0][0] = (volatile long*)(Map(NULL, 0, file) + 64);
  words[1][0] = (volatile long*)(Map(NULL, 0, file) + 64);

  char* const ring = MapRing(NewFile(), 4);
  words[0][1] = (volatile long*)(ring + kPage - kBeforeEnd);
  words[1][1] = (volatile long*)(ring + 3 * kPage - kBeforeEnd);

  const int segment = shmget(IPC_PRIVATE, kPage, 0600);
  Check(segment >= 0);
  for (int i = 0; i < 2; ++i) {
    char* const at = shmat(segment, NULL, 0);
    Check(at != (char*)-1);
    words[i][2] = (volatile long*)(at + 8);
  }
  Check(shmctl(segment, IPC_RMID, NULL) == 0);

  char* const one = Map(NULL, MAP_ANONYMOUS, -1);
  char* const other = mremap(one, 0, kPage, MREMAP_MAYMOVE);
  words[0][3] = (volatile long*)(one + 16);
  words[1][3] = (volatile long*)((other != MAP_FAILED ? other : one) + 16);

  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) {
    Check(pthread_create(&threads[i], NULL, Race, words[i]) == 0);
  }
  for (int i = 0; i < 2; ++i) {
    pthread_join(threads[i], NULL);
  }
  for (int k = 0; k < kWords; ++k) {
    Check(*words[0][k] == *words[1][k]);
  }
  puts("EXIT-SUCCESS");
  return 0;
}
