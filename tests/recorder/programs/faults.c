// Ends by the signal that its argument names, brought about by an instruction
// or sent from elsewhere.
#include <emmintrin.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

static volatile int sink;
static volatile int zero;
static volatile int started;

static void* Anonymous(int protection) {
  return mmap(NULL, 4096, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

// A page of a mapping that the file does not reach.
static void ReadBehindFile(void) {
  FILE* file = tmpfile();
  const volatile char* at =
      mmap(NULL, 4096, PROT_READ, MAP_SHARED, fileno(file), 0);
  sink = *at;
}

static void LoadMisaligned(void) {
  char* at = Anonymous(PROT_READ);
  __m128i loaded;
  __asm__ volatile("movdqa %1, %0"
                   : "=x"(loaded)
                   : "m"(*(char(*)[16])(at + 8)));
  sink = _mm_cvtsi128_si32(loaded);
}

static void* Spin(void* unused) {
  started = 1;
  while (zero == 0) {  // a branch that the trace tells, unlike for (;;)
    ++sink;
  }
  return unused;
}

static void SendToSpinner(int number) {
  pthread_t thread;
  pthread_create(&thread, NULL, Spin, NULL);
  while (started == 0) {
  }
  pthread_kill(thread, number);
  pthread_join(thread, NULL);
}

static void SpinUntilAlarm(void) {
  const struct itimerval soon = {{0, 0}, {0, 20000}};
  setitimer(ITIMER_REAL, &soon, NULL);
  Spin(NULL);
}

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "";
  if (strcmp(how, "unmapped") == 0) {
    *(volatile int*)0x123450 = 1;
  } else if (strcmp(how, "protection") == 0) {
    *(volatile int*)Anonymous(PROT_READ) = 2;
  } else if (strcmp(how, "noncanonical") == 0) {
    sink = *(volatile int*)0x8000000000001000;
  } else if (strcmp(how, "misaligned") == 0) {
    LoadMisaligned();
  } else if (strcmp(how, "jump") == 0) {
    ((void (*)(void))Anonymous(PROT_READ))();
  } else if (strcmp(how, "divide") == 0) {
    sink = 5 / zero;
  } else if (strcmp(how, "illegal") == 0) {
    __asm__ volatile("ud2");
  } else if (strcmp(how, "breakpoint") == 0) {
    __asm__ volatile("int3");
  } else if (strcmp(how, "bus") == 0) {
    ReadBehindFile();
  } else if (strcmp(how, "sent") == 0) {
    SendToSpinner(SIGABRT);
  } else if (strcmp(how, "alarm") == 0) {
    SpinUntilAlarm();
  }
  return 3;
}
