// FS holds the thread's own block, and the base of GS is set and used:
// arch_prctl(2).
#include <asm/prctl.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "check.h"

int main(void) {
  unsigned long base = 0;
  CHECK(syscall(SYS_arch_prctl, ARCH_GET_FS, &base) == 0);
  CHECK(base == (unsigned long)pthread_self());
  static uint64_t words[4] = {1, 2, 3, 4};
  CHECK(syscall(SYS_arch_prctl, ARCH_SET_GS, words) == 0);
  CHECK(syscall(SYS_arch_prctl, ARCH_GET_GS, &base) == 0);
  CHECK(base == (unsigned long)words);
  uint64_t value;
  __asm__ volatile("movq %%gs:16, %0" : "=r"(value));
  CHECK(value == 3);
  __asm__ volatile("movq %0, %%gs:8" : : "r"(9ul) : "memory");
  CHECK(((volatile uint64_t*)words)[1] == 9);
  return Ok();
}
