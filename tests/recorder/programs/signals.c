// Signals that are handled. The argument says which; exits with 0 if all was as
// the System V ABI and the kernel have it.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

static volatile sig_atomic_t handled;
static volatile uint64_t sink;

static void Check(int holds, const char* what) {
  if (!holds) {
    fprintf(stderr, "signals: not so: %s\n", what);
    exit(1);
  }
}

// A frame is at a multiple of 16 wherever the caller kept to the ABI.
static __attribute__((noinline)) void CheckAlignment(void) {
  const uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
  Check(frame % 16 == 0, "the stack of a handler is aligned");
}

static void Handle(int signal) {
  const uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
  Check(frame % 16 == 0, "the frame of a handler is aligned");
  CheckAlignment();
  handled += signal;
}

static void HandleInfo(int signal, siginfo_t* info, void* context) {
  CheckAlignment();
  const ucontext_t* state = context;
  Check(info->si_signo == signal, "the siginfo has the signal's number");
  Check(info->si_pid == getpid(), "and who sent it");
  Check(state->uc_mcontext.gregs[REG_RSP] != 0, "the context has registers");
  Check(((uintptr_t)state->uc_mcontext.fpregs) % 16 == 0, "and FPU state");
  Check(state->uc_mcontext.fpregs->mxcsr == 0x1f80, "which is right");
  handled += signal;
}

static void Install(int signal, int flags) {
  struct sigaction action = {.sa_flags = flags};
  if ((flags & SA_SIGINFO) != 0) {
    action.sa_sigaction = HandleInfo;
  } else {
    action.sa_handler = Handle;
  }
  Check(sigaction(signal, &action, NULL) == 0, "sigaction");
}

// Doubles that are live while the handlers run must be there afterwards.
static void Aligned(void) {
  Install(SIGUSR1, 0);
  Install(SIGUSR2, SA_SIGINFO);
  volatile double value = 0.5;
  for (int i = 0; i < 8; ++i) {
    const double before = value * 3;
    raise(i % 2 == 0 ? SIGUSR1 : SIGUSR2);
    Check(before == value * 3, "registers are restored");
  }
  Check(handled == 4 * (SIGUSR1 + SIGUSR2), "all were handled");
}

// The stack ends where the memory does.
static void AlternateStack(void) {
  const size_t size = 16384;
  char* area =
      mmap(NULL, size + 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  Check(mprotect(area + 4096, size, PROT_READ | PROT_WRITE) == 0, "mprotect");
  const stack_t stack = {.ss_sp = area + 4096, .ss_size = size};
  Check(sigaltstack(&stack, NULL) == 0, "sigaltstack");
  Install(SIGUSR1, SA_ONSTACK);
  Install(SIGUSR2, SA_ONSTACK | SA_SIGINFO);
  raise(SIGUSR1);
  raise(SIGUSR2);
  Check(handled == SIGUSR1 + SIGUSR2, "both were handled");
}

// The kernel starts the second handler before the first one's first
// instruction.
static void Together(void) {
  Install(SIGUSR1, 0);
  Install(SIGUSR2, SA_SIGINFO);
  sigset_t both;
  sigemptyset(&both);
  sigaddset(&both, SIGUSR1);
  sigaddset(&both, SIGUSR2);
  sigprocmask(SIG_BLOCK, &both, NULL);
  raise(SIGUSR1);
  raise(SIGUSR2);
  sigprocmask(SIG_UNBLOCK, &both, NULL);
  Check(handled == SIGUSR1 + SIGUSR2, "both were handled");
}

// Long enough that another thread is probably in the call that it waits in.
static void Linger(void) {
  for (int i = 0; i < 20000; ++i) {
    sink += sink * 7 + 1;
  }
}

static void* WaitForSignal(void* unused) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  int signal = 0;
  sigwait(&set, &signal);
  return unused;
}

static void Cancel(void) {
  pthread_t thread;
  void* result = NULL;
  pthread_create(&thread, NULL, WaitForSignal, NULL);
  Linger();
  Check(pthread_cancel(thread) == 0, "pthread_cancel");
  pthread_join(thread, &result);
  Check(result == PTHREAD_CANCELED, "the thread was cancelled");
}

// The kernel gives the signal to a thread that does not block it; all of this
// program's do.
static void Process(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  sigprocmask(SIG_BLOCK, &set, NULL);
  Check(kill(getpid(), SIGUSR1) == 0, "kill");
  int signal = 0;
  Check(sigwait(&set, &signal) == 0 && signal == SIGUSR1, "it was pending");
}

static int ends[2];
static sem_t semaphore;

static void* ReadByte(void* unused) {
  char byte = 0;
  Check(read(ends[0], &byte, 1) == 1, "the read is made again");
  return unused;
}

static void* WaitForPost(void* unused) {
  Check(sem_wait(&semaphore) == 0, "the futex wait is made again");
  return unused;
}

// Until the thread has handled one more signal.
static void Interrupt(pthread_t thread) {
  const int before = handled;
  Linger();
  pthread_kill(thread, SIGUSR1);
  while (handled == before) {
    sched_yield();
  }
}

static void Restarted(void) {
  pthread_t thread;
  Install(SIGUSR1, SA_RESTART);
  Check(pipe(ends) == 0, "pipe");
  pthread_create(&thread, NULL, ReadByte, NULL);
  Interrupt(thread);
  Interrupt(thread);
  Check(write(ends[1], "x", 1) == 1, "write");
  pthread_join(thread, NULL);
  sem_init(&semaphore, 0, 0);
  pthread_create(&thread, NULL, WaitForPost, NULL);
  Interrupt(thread);
  sem_post(&semaphore);
  pthread_join(thread, NULL);
}

static volatile int interrupted;

static void* ReadInterrupted(void* unused) {
  char byte = 0;
  Check(read(ends[0], &byte, 1) == -1 && errno == EINTR,
        "the read is interrupted");
  interrupted = 1;
  return unused;
}

static void Interrupted(void) {
  pthread_t thread;
  Install(SIGUSR1, 0);
  Check(pipe(ends) == 0, "pipe");
  pthread_create(&thread, NULL, ReadInterrupted, NULL);
  while (!interrupted) {
    Linger();
    pthread_kill(thread, SIGUSR1);
  }
  pthread_join(thread, NULL);
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*run)(void);
  } kCases[] = {{"aligned", Aligned},        {"altstack", AlternateStack},
                {"together", Together},      {"cancel", Cancel},
                {"process", Process},        {"restarted", Restarted},
                {"interrupted", Interrupted}};
  for (size_t i = 0; argc == 2 && i < sizeof(kCases) / sizeof(*kCases); ++i) {
    if (strcmp(argv[1], kCases[i].name) == 0) {
      kCases[i].run();
      return 0;
    }
  }
  return 2;
}
