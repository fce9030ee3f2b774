// The word that is named at a thread's birth is cleared and woken at its end:
// clone(2), CLONE_CHILD_CLEARTID.
#include <linux/futex.h>
#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "check.h"

static char stack[65536] __attribute__((aligned(16)));
static volatile pid_t word = 1;
static int ran = 0;
static int Run(void* value) {
  __atomic_store_n(&ran, *(int*)value, __ATOMIC_SEQ_CST);
  syscall(SYS_exit, 0);
  return 0;
}

int main(void) {
  int value = 6;
  const int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
                    CLONE_THREAD | CLONE_SYSVSEM | CLONE_PARENT_SETTID |
                    CLONE_CHILD_CLEARTID;
  pid_t told = 0;
  const pid_t thread =
      clone(Run, stack + sizeof(stack), flags, &value, &told, NULL, &word);
  CHECK(thread > 0 && told == thread);
  for (pid_t now; (now = word) != 0;) {
    syscall(SYS_futex, &word, FUTEX_WAIT, now, NULL, NULL, 0);
  }
  CHECK(__atomic_load_n(&ran, __ATOMIC_SEQ_CST) == 6);
  return Ok();
}
