// Handlers that do not come back.
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "signals.h"

// Form 4.
enum { kFaults = 20, kRoom = 1 << 16 };

static sigjmp_buf landing;
static _Atomic long landed;
static pthread_t main_thread;
static volatile int faults;
static _Alignas(4096) char overflowing[3 * kRoom];

static void OnLeave(int signal, siginfo_t* info, void* context) {
  (void)info;
  (void)context;
  Want("on the alternate stack",
       OnAlternate((uintptr_t)__builtin_frame_address(0)), signal == SIGUSR2);
  ++handled[signal];
  siglongjmp(landing, signal);
}

// The next comes when the main thread has seen to the one before.
static void* SendLeaves(void* argument) {
  for (long i = 1; i <= (long)argument; ++i) {
    for (long turn = i; turn == i || landed < i; ++turn) {
      Delay(turn);
    }
    pthread_kill(main_thread, i % 2 == 1 ? SIGUSR1 : SIGUSR2);
  }
  return NULL;
}

// Deep in calls, some of them the kernel's.
static __attribute__((noinline)) long Wander(long depth) {
  const long inner = depth == 0 ? syscall(SYS_getppid) : Wander(depth - 1);
  Spin(3);
  return inner + (depth == 5 ? syscall(SYS_getppid) : 0);
}

static void WaitForLeaves(long count) {
  const int by = sigsetjmp(landing, 1);
  const long sum = handled[SIGUSR1] + handled[SIGUSR2];
  const int last = sum % 2 == 1 ? SIGUSR1 : SIGUSR2;
  stack_t stack;
  Want("who jumped", by, sum == 0 ? 0 : last);
  Want("mask", Mask(), Bit(SIGHUP) | Bit(SIGWINCH));
  WantNone("sigaltstack", sigaltstack(NULL, &stack));
  Want("flags of the stack", stack.ss_flags, 0);
  if (sum < count) {
    landed = sum + 1;
    for (;;) {
      Wander(20);
    }
  }
}

static void OnFaultLeave(int signal, siginfo_t* info, void* context) {
  const uint64_t address = (uintptr_t)info->si_addr;
  (void)context;
  Want("alternate stack", OnAlternate((uintptr_t)__builtin_frame_address(0)),
       1);
  if (faults % 2 == 1) {
    Want("si_code", info->si_code, SEGV_MAPERR);
    Want("si_addr", address, 16);
  } else {
    Want("si_code", info->si_code, SEGV_ACCERR);
    Want("si_addr", address - (uintptr_t)overflowing < kRoom, 1);
  }
  ++handled[signal];
  siglongjmp(landing, 1);
}

static __attribute__((noinline)) long Recurse(long deep) {
  volatile char room[1000];
  room[deep % 1000] = (char)deep;
  return deep > 1000000 ? 0 : Recurse(deep + 1) + room[deep % 7];
}

static void* FaultAndLeave(void* argument) {
  char* volatile none = NULL;
  UseAlternate();
  (void)sigsetjmp(landing, 1);
  Want("mask", Mask(), Bit(SIGHUP) | Bit(SIGWINCH));
  WantHandled("faults", SIGSEGV, faults);
  while (faults < kFaults) {
    ++faults;
    if (faults % 2 == 1) {
      none[16] = 1;
    } else {
      Recurse(1);
    }
  }
  return argument;
}

// On a thread whose stack has an end that is known.
static void RunFaults(void) {
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  WantNone("mprotect", mprotect(overflowing, kRoom, PROT_NONE));
  pthread_attr_setstack(&attributes, overflowing + kRoom, 2l * kRoom);
  WantNone("pthread_create",
           pthread_create(&thread, &attributes, FaultAndLeave, NULL));
  pthread_join(thread, NULL);
  pthread_attr_destroy(&attributes);
}

void Jumps(long count) {
  pthread_t thread;
  main_thread = pthread_self();
  UseAlternate();
  Install(SIGUSR1, OnLeave, 0, Bit(SIGUSR2));
  Install(SIGUSR2, OnLeave, SA_ONSTACK, Bit(SIGTERM));
  Install(SIGSEGV, OnFaultLeave, SA_ONSTACK, Bit(SIGUSR1));
  SetMask(~0ul);
  WantNone("pthread_create",
           pthread_create(&thread, NULL, SendLeaves, (void*)count));
  SetMask(Bit(SIGHUP) | Bit(SIGWINCH));
  WaitForLeaves(count);
  pthread_join(thread, NULL);
  const stack_t none = {.ss_flags = SS_DISABLE};
  WantNone("sigaltstack", sigaltstack(&none, NULL));
  RunFaults();
  printf("longjmp: %ld signals and %d faults, all left\n", count, kFaults);
}
