// A child wakes its parent by a word in memory that both share: futex(2)
// without the private flag.
#include <linux/futex.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "check.h"

int main(void) {
  uint32_t* word = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(word != MAP_FAILED);
  const pid_t child = fork();
  if (child == 0) {
    CHECK(usleep(300000) == 0);  // the parent waits by then
    __atomic_store_n(word, 1, __ATOMIC_SEQ_CST);
    CHECK(syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0) >= 0);
    _exit(0);
  }
  while (__atomic_load_n(word, __ATOMIC_SEQ_CST) == 0) {
    CHECK(syscall(SYS_futex, word, FUTEX_WAIT, 0, NULL, NULL, 0) == 0 ||
          errno == EAGAIN);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  return Ok();
}
