#ifndef CLEW_TESTS_PROGRAMS_FREESTANDING_STATIC_START_H_
#define CLEW_TESTS_PROGRAMS_FREESTANDING_STATIC_START_H_

// The start of a program without a C library: calls Main, prints EXIT-SUCCESS
// if it returns 0, and exits with what it returned.

int Main(void);

static inline long Syscall3(long number, long a, long b, long c) {
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c)
                   : "rcx", "r11", "memory");
  return result;
}

__attribute__((noreturn, used)) static void Start(void) {
  static const char kText[] = "EXIT-SUCCESS\n";
  const int status = Main();
  if (status == 0) {
    Syscall3(1, 1, (long)kText, sizeof kText - 1);  // write
  }
  for (;;) {
    Syscall3(231, status, 0, 0);  // exit_group
  }
}

// The kernel enters with an aligned stack; a function expects it misaligned by
// the return address.
__asm__(
    ".globl _start\n"
    "_start:\n\t"
    "xor %ebp, %ebp\n\t"
    "call Start\n");

#endif  // CLEW_TESTS_PROGRAMS_FREESTANDING_STATIC_START_H_
