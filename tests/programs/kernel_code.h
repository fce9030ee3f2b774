#ifndef CLEW_TESTS_PROGRAMS_KERNEL_CODE_H_
#define CLEW_TESTS_PROGRAMS_KERNEL_CODE_H_

#include <stddef.h>
#include <sys/auxv.h>

// Of the code that the kernel gives to the program.
static unsigned long sum_of_kernel_code(void) {
  enum { kCodeBytes = 4096 };
  const unsigned char* const code =
      (const unsigned char*)getauxval(AT_SYSINFO_EHDR);
  unsigned long sum = 0;
  for (int i = 0; code != NULL && i < kCodeBytes; ++i) {
    sum = sum * 31 + code[i];
  }
  return sum;
}

#endif  // CLEW_TESTS_PROGRAMS_KERNEL_CODE_H_
