// A signal handler that leaves other values in the registers of MMX and x87: on
// return from it the thread has its own again, as the kernel sees to.
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static void Handle(int signal) {
  (void)signal;
  __asm__ volatile("fninit\n\tfldpi\n\tfldpi\n\tpcmpeqb %%mm3, %%mm3" ::
                       : "st", "st(1)", "mm3");
}

// Sends itself the signal between the two instructions `before` and `after`.
#define ACROSS_SIGNAL(before, after, result)                                  \
  do {                                                                        \
    long number = SYS_tgkill;                                                 \
    __asm__ volatile("fninit\n\t" before "\n\tsyscall\n\t" after "\n\tfninit" \
                     : "+a"(number), "=m"(result)                             \
                     : "D"((long)getpid()), "S"((long)getpid()),              \
                       "d"((long)SIGUSR1)                                     \
                     : "rcx", "r11", "st", "mm3", "memory");                  \
  } while (0)

int main(void) {
  struct sigaction action = {.sa_handler = Handle};
  sigaction(SIGUSR1, &action, NULL);
  double one = 0;
  ACROSS_SIGNAL("fld1", "fstpl %1", one);
  uint64_t low = 0;
  ACROSS_SIGNAL("movq %%rdi, %%mm3", "movq %%mm3, %1", low);
  return one == 1 && low == (uint64_t)getpid() ? EXIT_SUCCESS : EXIT_FAILURE;
}
