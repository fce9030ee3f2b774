// A parent reads and writes the memory of its child: process_vm_readv(2).
#include <sys/uio.h>
#include <sys/wait.h>

#include "check.h"

static volatile int value = 1;

int main(void) {
  int ready[2];
  int go[2];
  char byte;
  CHECK(pipe(ready) == 0 && pipe(go) == 0);
  const pid_t child = fork();
  if (child == 0) {
    value = 7;
    CHECK(write(ready[1], "x", 1) == 1 && read(go[0], &byte, 1) == 1);
    _exit(value);
  }
  CHECK(read(ready[0], &byte, 1) == 1);
  int seen = 0;
  struct iovec local = {&seen, sizeof(seen)};
  struct iovec remote = {(void*)&value, sizeof(value)};
  CHECK(process_vm_readv(child, &local, 1, &remote, 1, 0) == sizeof(seen));
  CHECK(seen == 7 && value == 1);
  seen = 9;
  CHECK(process_vm_writev(child, &local, 1, &remote, 1, 0) == sizeof(seen));
  CHECK(write(go[1], "x", 1) == 1);
  int status;
  CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 9);
  return Ok();
}
