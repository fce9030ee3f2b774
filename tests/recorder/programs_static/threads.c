// Threads without a C library: three of them add under a futex lock, the first
// one waits for them.
#include "nolibc.h"

enum { kThreads = 3, kRounds = 60 };

static int lock;
static int left = kThreads;
static unsigned long total;
static char stacks[kThreads][8192] __attribute__((aligned(16)));

static void Wait(int* word, int value) { Call(202, (long)word, 0, value, 0); }
static void Wake(int* word) { Call(202, (long)word, 1, 1, 0); }

static void Lock(void) {
  int expected = 0;
  if (__atomic_compare_exchange_n(&lock, &expected, 1, 0, __ATOMIC_SEQ_CST,
                                  __ATOMIC_SEQ_CST)) {
    return;
  }
  while (__atomic_exchange_n(&lock, 2, __ATOMIC_SEQ_CST) != 0) {
    Wait(&lock, 2);
  }
}

static void Unlock(void) {
  if (__atomic_exchange_n(&lock, 0, __ATOMIC_SEQ_CST) == 2) {
    Wake(&lock);
  }
}

__attribute__((used, noinline)) static void Work(void) {
  for (int i = 0; i < kRounds; ++i) {
    Lock();
    for (int k = 0; k < 20; ++k) {
      total += (unsigned long)k;
    }
    Unlock();
  }
  if (__atomic_sub_fetch(&left, 1, __ATOMIC_SEQ_CST) == 0) {
    Wake(&left);
  }
  Call(60, 0, 0, 0, 0);
}

static void Start(char* stack_end) {
  // VM, FS, FILES, SIGHAND, THREAD, SYSVSEM
  const long flags = 0x100 | 0x200 | 0x400 | 0x800 | 0x10000 | 0x40000;
  __asm__ volatile(
      "xor %%edx, %%edx\n"
      "xor %%r10d, %%r10d\n"
      "xor %%r8d, %%r8d\n"
      "mov $56, %%eax\n"
      "syscall\n"
      "test %%eax, %%eax\n"
      "jnz 1f\n"
      "call Work\n"
      "1:\n"
      :
      : "D"(flags), "S"(stack_end)
      : "rax", "rcx", "rdx", "r8", "r10", "r11", "memory");
}

__attribute__((force_align_arg_pointer)) void _start(void) {
  for (int i = 0; i < kThreads; ++i) {
    Start(stacks[i] + sizeof stacks[i]);
  }
  for (int n; (n = __atomic_load_n(&left, __ATOMIC_SEQ_CST)) != 0;) {
    Wait(&left, n);
  }
  Write("done\n", 5);
  Exit(total == (unsigned long)kThreads * kRounds * 190 ? 0 : 1);
}
