// Asks the kernel for what its argument names, and checks the answers; exits
// with 0 if they are the kernel's.
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

static void Check(int holds, const char* what) {
  if (!holds) {
    fprintf(stderr, "answers: not so: %s\n", what);
    exit(1);
  }
}

// Of the number of a call the kernel looks at the lower half of rax.
static long CallByRax(unsigned long rax) {
  __asm__ volatile("syscall" : "+a"(rax) : : "rcx", "r11", "memory");
  return (long)rax;
}

static void NoSuchNumbers(void) {
  const long numbers[] = {-1, -10, 400, 999, 0x40000000};
  for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); ++i) {
    Check(syscall(numbers[i]) == -1 && errno == ENOSYS, "no such number");
  }
  Check(CallByRax(0xfffffffful) == -ENOSYS, "no such number, in eax");
  Check(CallByRax(0x100000000ul + SYS_getpid) == getpid(), "a number in eax");
}

static void RareCalls(void) {
  struct timex time = {0};
  Check(adjtimex(&time) >= 0 && time.tick > 0, "adjtimex");
  memset(&time, 0, sizeof(time));
  Check(clock_adjtime(CLOCK_REALTIME, &time) >= 0 && time.tick > 0,
        "clock_adjtime");
  const int self = (int)syscall(SYS_pidfd_open, getpid(), 0);
  Check(self >= 0, "pidfd_open");
  const int copy = (int)syscall(SYS_pidfd_getfd, self, self, 0);
  Check(copy > self, "pidfd_getfd");
  const int kFiles = 0;  // KCMP_FILE
  Check(syscall(SYS_kcmp, getpid(), getpid(), kFiles, self, copy) == 0, "kcmp");
  Check(unshare(CLONE_FS) == 0, "unshare");
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  if (strcmp(what, "numbers") == 0) {
    NoSuchNumbers();
  } else if (strcmp(what, "rare") == 0) {
    RareCalls();
  } else {
    return 2;
  }
  return 0;
}
