// System calls for programs without a C library.
#ifndef CLEW_TESTS_RECORDER_PROGRAMS_STATIC_NOLIBC_H_
#define CLEW_TESTS_RECORDER_PROGRAMS_STATIC_NOLIBC_H_

static inline long Call(long number, long a, long b, long c, long d) {
  long result;
  register long r10 __asm__("r10") = d;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
                   : "rcx", "r11", "memory");
  return result;
}

static inline void Write(const char* text, long size) {
  Call(1, 1, (long)text, size, 0);
}

static inline void Exit(int status) {
  for (;;) {
    Call(231, status, 0, 0, 0);
  }
}

#endif  // CLEW_TESTS_RECORDER_PROGRAMS_STATIC_NOLIBC_H_
