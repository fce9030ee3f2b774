// Threads race for words of memory that is then given back and mapped again at
// the same addresses: it is zero each time, whatever they stored before.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { kPage = 4096, kRounds = 3, kIncrements = 40 };

static volatile long* words[5];  // each in memory of another kind
static volatile long odd;

static void* Race(void* unused) {
  for (int i = 0; i < kIncrements; ++i) {
    for (int k = 0; k < 5; ++k) {
      if ((*words[k] += 1) % 2 != 0) {
        ++odd;
      }
    }
  }
  return unused;
}

static void* Map(void* at, int more) {
  void* const addr = mmap(at, kPage, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | more, -1, 0);
  if (addr == MAP_FAILED) {
    abort();
  }
  return addr;
}

static void Check(int condition) {
  if (!condition) {
    abort();
  }
}

int main(void) {
  // Behind what malloc has taken, which is enough for all that follows.
  Check(malloc(1) != NULL);
  char* const heap_end = (char*)syscall(SYS_brk, 0);
  char* const mapped = Map(NULL, 0);
  char* const over = Map(NULL, 0);
  char* const discarded = Map(NULL, 0);
  char* const target = Map(NULL, 0);
  for (int round = 0; round < kRounds; ++round) {
    Check(syscall(SYS_brk, heap_end + kPage) == (long)(heap_end + kPage));
    char* const source = Map(NULL, 0);
    Check(mremap(source, kPage, kPage, MREMAP_MAYMOVE | MREMAP_FIXED, target) ==
          target);
    words[0] = (volatile long*)mapped;
    words[1] = (volatile long*)(over + 64);
    words[2] = (volatile long*)(discarded + 128);
    words[3] = (volatile long*)(target + 192);
    words[4] = (volatile long*)(heap_end + kPage - 8);
    for (int k = 0; k < 5; ++k) {
      Check(*words[k] == 0);
    }
    pthread_t threads[2];
    for (int i = 0; i < 2; ++i) {
      Check(pthread_create(&threads[i], NULL, Race, NULL) == 0);
    }
    for (int i = 0; i < 2; ++i) {
      pthread_join(threads[i], NULL);
    }
    Check(munmap(mapped, kPage) == 0);
    Check(Map(mapped, MAP_FIXED) == mapped);
    Check(Map(over, MAP_FIXED) == over);
    Check(madvise(discarded, kPage, MADV_DONTNEED) == 0);
    if (round + 1 < kRounds) {  // QEMU's core dump has the page all the same
      Check(syscall(SYS_brk, heap_end) == (long)heap_end);
    }
  }
  puts("EXIT-SUCCESS");
  return 0;
}
