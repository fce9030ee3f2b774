// Fails in one of several ways, with two more threads that wait, one in its own
// function. Each way is a chain of calls that the test knows by name.
#undef NDEBUG
#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_barrier_t started;
static volatile int sink;
static void (*volatile nowhere)(void);

// As ld --package-metadata writes it.
#define PACKAGE "{\"type\":\"deb\",\"name\":\"bank\",\"version\":\"1.4.2-1\"}"
__attribute__((section(".note.package"), used,
               aligned(4))) static const struct {
  unsigned name_size, text_size, type;
  char name[4], text[sizeof PACKAGE];
} package = {4, sizeof PACKAGE, 0xcafe1a7e, "FDO", PACKAGE};

#define OUT_OF_LINE __attribute__((noinline, noclone))

OUT_OF_LINE static void Innermost(volatile int* where) {
  *where = 1;  // STORE
  sink += 1;
}

OUT_OF_LINE static void Middle(volatile int* where) {
  Innermost(where);
  sink += 2;
}

OUT_OF_LINE static void CallNowhere(void) {
  nowhere();  // CALL
  sink += 3;
}

OUT_OF_LINE static int Recurse(int depth) {
  volatile char room[64];
  room[0] = (char)depth;
  return depth == 0 ? (Innermost(NULL), 0) : Recurse(depth - 1) + room[0];
}

static void OnSignal(int number) {
  (void)number;
  Middle(NULL);
}

OUT_OF_LINE static void* Waits(void* unused) {
  (void)unused;
  pthread_barrier_wait(&started);
  pause();
  sink += 4;
  return NULL;
}

int main(int argc, char** argv) {
  const char* way = argc > 1 ? argv[1] : "store";
  pthread_t thread;
  pthread_barrier_init(&started, NULL, 3);
  pthread_create(&thread, NULL, Waits, NULL);
  pthread_create(&thread, NULL, Waits, NULL);
  pthread_barrier_wait(&started);
  if (strcmp(way, "store") == 0) {
    Middle(NULL);
  } else if (strcmp(way, "nowhere") == 0) {
    CallNowhere();
  } else if (strcmp(way, "recurse") == 0) {
    sink += Recurse(argc > 2 ? atoi(argv[2]) : 20);
  } else if (strcmp(way, "handler") == 0) {
    signal(SIGUSR1, OnSignal);
    raise(SIGUSR1);
  } else if (strcmp(way, "heap") == 0) {
    char* volatile block = malloc(100);
    free(block);
    free(block);  // the C library finds it, and aborts
  } else if (strcmp(way, "assert") == 0) {
    assert(sink == 7);  // ASSERT
  } else if (strcmp(way, "forge") == 0 && argc == 5) {
    // As assert() does, with texts of the command line.
    __assert_fail(argv[2], argv[3], 7, argv[4]);
  } else {
    abort();
  }
  puts("EXIT-SUCCESS");
  return 0;
}
