// Every kind of control flow, without a C library: loops, recursion deeper than
// a return stack of 64, calls and jumps through memory, returns that match no
// call, REP, LOOP, JRCXZ, system calls, a signal by a fault and one by kill.
#include "nolibc.h"

static unsigned long sum;
static volatile int handled;

__attribute__((noinline)) static unsigned long Deep(unsigned long n) {
  if (n == 0) {
    return 1;
  }
  unsigned long below = Deep(n - 1);
  __asm__ volatile("" : "+r"(below));  // a call, not a loop
  return n + below * 3;
}

__attribute__((noinline)) static void Add(void) { sum += 1; }
__attribute__((noinline)) static void Triple(void) { sum *= 3; }
__attribute__((noinline)) static void Fold(void) { sum ^= sum >> 7; }
static void (*volatile table[3])(void) = {Add, Triple, Fold};

__attribute__((noinline)) static int Choose(unsigned long n) {
  switch (n % 9) {
    case 0:
      return 7;
    case 1:
      return (int)sum;
    case 2:
      return 1;
    case 3:
      return -(int)sum;
    case 4:
      return 99;
    case 5:
      return (int)(sum * 3);
    case 6:
      return 12;
    default:
      return 0;
  }
}

__attribute__((noinline)) static void Assembly(void) {
  static char from[100];
  static char to[100];
  __asm__ volatile(
      "mov $100, %%ecx\n"
      "lea %0, %%rsi\n"
      "lea %1, %%rdi\n"
      "rep movsb\n"
      "xor %%ecx, %%ecx\n"
      "rep stosb\n"  // no iteration
      "mov $5, %%ecx\n"
      "1: loop 1b\n"
      "jrcxz 2f\n"
      "nop\n"
      "2: lea 3f(%%rip), %%rax\n"
      "push %%rax\n"
      "ret\n"  // a jump in disguise
      "nop\n"
      "3:\n"
      :
      : "m"(from), "m"(to)
      : "rax", "rcx", "rsi", "rdi", "memory");
}

// The idiom that loads the instruction pointer: a call that is none.
__attribute__((noinline)) static void CallNext(void) {
  __asm__ volatile(
      "call 1f\n"
      "1: pop %%rax\n"
      :
      :
      : "rax", "memory");
}

// kernel's struct sigaction for rt_sigaction
struct Action {
  void (*handler)(int);
  unsigned long flags;
  void (*restorer)(void);
  unsigned long mask;
};

__attribute__((naked)) static void Restore(void) {
  __asm__ volatile("mov $15, %eax\nsyscall");
}

static void Handle(int signal) { handled += signal; }

static void Signals(void) {
  const struct Action action = {Handle, 0x04000000, Restore, 0};
  Call(13, 10, (long)&action, 0, 8);  // SIGUSR1
  const long self = Call(39, 0, 0, 0, 0);
  for (int i = 0; i < 3; ++i) {
    Call(62, self, 10, 0, 0);
  }
}

__attribute__((force_align_arg_pointer)) void _start(void) {
  for (unsigned long i = 0; i < 1000; ++i) {
    table[i % 3]();
    sum += (unsigned long)Choose(i);
  }
  for (unsigned long i = 0; i < 100; i += 9) {
    sum += Deep(i);
  }
  Assembly();
  CallNext();
  Signals();
  Write("done\n", 5);
  Exit(handled == 30 ? 0 : 1);
}
