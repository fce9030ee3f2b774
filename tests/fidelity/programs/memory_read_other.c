// A parent reads the memory of its child, and its own, into several places:
// process_vm_readv(2).
#include <string.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "check.h"

static volatile char value[] = "of the parent";

static ssize_t ReadFrom(pid_t process, char* first, char* rest) {
  const struct iovec local[] = {{first, 3}, {rest, sizeof(value) - 3}};
  const struct iovec remote = {(void*)value, sizeof(value)};
  return process_vm_readv(process, local, 2, &remote, 1, 0);
}

int main(void) {
  int ready[2];
  int go[2];
  char byte;
  CHECK(pipe(ready) == 0 && pipe(go) == 0);
  const pid_t child = fork();
  if (child == 0) {
    strcpy((char*)value, "of the child!");
    CHECK(write(ready[1], "x", 1) == 1 && read(go[0], &byte, 1) == 1);
    return 0;
  }
  CHECK(read(ready[0], &byte, 1) == 1);
  char first[4] = "";
  char rest[sizeof(value)] = "";
  CHECK(ReadFrom(child, first, rest) == sizeof(value));
  CHECK(strcmp(first, "of ") == 0 && strcmp(rest, "the child!") == 0);
  CHECK(ReadFrom(getpid(), first, rest) == sizeof(value));
  CHECK(strcmp(rest, "the parent") == 0);
  CHECK(write(go[1], "x", 1) == 1);
  int status;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  CHECK_FAILS(ReadFrom(child, first, rest), ESRCH);
  return Ok();
}
