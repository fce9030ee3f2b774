// Does a little of everything that the tracer's runtime sees, between the first
// SIGUSR2 and SIGWINCH, while a SIGUSR1 and a SIGRTMIN come at any moment.
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

static volatile long handled[65];
static volatile long sum;

static void Count(int number) { ++handled[number]; }

static void CountAndCheck(int number, siginfo_t* info, void* context) {
  const ucontext_t* interrupted = context;
  if (info->si_signo != number ||
      interrupted->uc_mcontext.gregs[REG_RSP] < (greg_t)(long)&number) {
    printf("bad frame\n");
    exit(1);
  }
  ++handled[number];
}

static volatile char* page;

static void Repair(int number, siginfo_t* info, void* context) {
  (void)number;
  (void)context;
  if (info->si_addr != (void*)page) {
    printf("bad address\n");
    exit(1);
  }
  mprotect((void*)page, 4096, PROT_READ | PROT_WRITE);
}

static long Twice(long value) { return 2 * value; }
static long Thrice(long value) { return 3 * value; }
static long (*volatile const functions[])(long) = {Twice, Thrice};

static void Act(int number, void (*handler)(int, siginfo_t*, void*),
                int flags) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = handler;
  action.sa_flags = flags | SA_RESTART;
  sigaction(number, &action, NULL);
}

static void Wait(void) {
  sigset_t set;
  sigset_t before;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR2);
  sigprocmask(SIG_BLOCK, &set, &before);
  raise(SIGUSR2);
  const long count = handled[SIGUSR2];
  while (handled[SIGUSR2] == count) {
    sigsuspend(&before);
  }
  sigprocmask(SIG_SETMASK, &before, NULL);
}

static void Fork(void) {
  const pid_t child = fork();
  if (child == 0) {
    raise(SIGUSR2);
    _exit((int)(handled[SIGUSR2] & 0x7f));
  }
  int status = 0;
  waitpid(child, &status, 0);
  sum += WEXITSTATUS(status);
}

int main(int argc, char** argv) {
  static char alternate[64 << 10];
  const stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
  sigaltstack(&stack, NULL);
  Act(SIGUSR1, CountAndCheck, SA_SIGINFO);
  Act(SIGUSR2, (void (*)(int, siginfo_t*, void*))(void*)Count, 0);
  Act(SIGRTMIN, CountAndCheck, SA_SIGINFO | SA_NODEFER);
  Act(SIGSEGV, Repair, SA_SIGINFO | SA_ONSTACK);
  page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  int ends[2];
  if (pipe(ends) != 0) {
    return 1;
  }
  raise(SIGUSR2);
  for (long i = 0; i < 600; ++i) {
    sum += functions[i & 1](i);
  }
  page[0] = 1;
  char byte = 7;
  if (write(ends[1], &byte, 1) == 1 && read(ends[0], &byte, 1) == 1) {
    sum += byte;
  }
  Wait();
  if (argc > 1 && strcmp(argv[1], "fork") == 0) {
    Fork();
  }
  raise(SIGWINCH);
  while (handled[SIGUSR1] == 0 || handled[SIGRTMIN] == 0) {
    sched_yield();
  }
  printf("%ld, SIGUSR1 %ld, SIGUSR2 %ld, SIGRTMIN %ld\n", sum, handled[SIGUSR1],
         handled[SIGUSR2], handled[SIGRTMIN]);
  return 0;
}
