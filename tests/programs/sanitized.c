// A program with AddressSanitizer, which reserves 20 TB of addresses. By its
// first argument:
//   clean   threads that count; ends with exit status 0
//   leak    forgets what it has allocated, which natively is a failure
//   race    one thread counts in what another one frees
//   answer  for each line "p" the line "pong", then it uses what it has freed
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 200

// No symbols in reports: reading debug information takes 50 times what the
// program does.
const char* __asan_default_options(void);
const char* __asan_default_options(void) { return "symbolize=0"; }

struct Item {
  long count;
};

static struct Item* item;
static void* Count(void* unused) {
  for (int i = 0; i < ROUNDS; ++i) {
    __atomic_add_fetch(&item->count, 1, __ATOMIC_RELAXED);
  }
  return unused;
}

static void* Release(void* unused) {
  free(item);
  return unused;
}

static void InTwoThreads(void* (*first)(void*), void* (*second)(void*)) {
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, first, NULL);
  pthread_create(&threads[1], NULL, second, NULL);
  pthread_join(threads[0], NULL);
  pthread_join(threads[1], NULL);
}

static void Answer(void) {
  char line[16];
  while (fgets(line, sizeof(line), stdin) != NULL && line[0] == 'p') {
    puts("pong");
    fflush(stdout);
  }
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  item = calloc(1, sizeof(*item));
  if (strcmp(what, "answer") == 0) {
    Answer();
    Release(NULL);
    Count(NULL);
  } else if (strcmp(what, "race") == 0) {
    InTwoThreads(Count, Release);
  } else {
    InTwoThreads(Count, Count);
    printf("%ld\n", item->count);
    if (strcmp(what, "leak") != 0) {
      free(item);
    }
  }
  item = NULL;
  return 0;
}
