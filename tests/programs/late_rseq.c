// Registers rseq(2) by itself, in its first thread at once and in another one
// when told: "p" is answered by "pong"; "r" makes a thread that registers, and
// is answered by the result; "q" makes that thread register once more, and is
// answered by what it gets and whether the kernel keeps its area. REQUIRES:
// GLIBC_TUNABLES has glibc.pthread.rseq=0.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/rseq.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { kSignature = 0x53053053 };

static struct rseq areas[2] = {{.cpu_id = (unsigned)-1},
                               {.cpu_id = (unsigned)-1}};
static sem_t asked;
static sem_t answered;
static long result;

static long Register(int area) {
  return syscall(SYS_rseq, &areas[area], sizeof(areas[area]), 0, kSignature) ==
                 0
             ? 0
             : errno;
}

static void* RegisterWhenAsked(void* unused) {
  for (;;) {
    sem_wait(&asked);
    result = Register(1);
    sem_post(&answered);
  }
  return unused;
}

int main(void) {
  if (Register(0) != 0 || sem_init(&asked, 0, 0) != 0 ||
      sem_init(&answered, 0, 0) != 0) {
    return 2;
  }
  char line[2];
  while (read(STDIN_FILENO, line, sizeof(line)) == sizeof(line)) {
    if (line[0] == 'p') {
      dprintf(STDOUT_FILENO, "pong\n");
      continue;
    }
    pthread_t thread;
    if (line[0] == 'r' &&
        pthread_create(&thread, NULL, RegisterWhenAsked, NULL) != 0) {
      return 2;
    }
    sem_post(&asked);
    sem_wait(&answered);
    dprintf(STDOUT_FILENO, "error %ld, kept %d\n", result,
            (int)areas[1].cpu_id >= 0);
  }
  return 0;
}
