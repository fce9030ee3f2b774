// A process writes its own memory by its number: process_vm_writev(2).
#include <string.h>
#include <sys/uio.h>

#include "check.h"

static char from[] = "apart from one another";
static char to[2][12];

int main(void) {
  struct iovec local = {from, sizeof(from)};
  struct iovec remote[2] = {{to[1], sizeof(to[1])}, {to[0], sizeof(to[0])}};
  const ssize_t written = process_vm_writev(getpid(), &local, 1, remote, 2, 0);
  CHECK(written == sizeof(from));
  CHECK(memcmp(to[1], from, 12) == 0 && strcmp(to[0], from + 12) == 0);
  return Ok();
}
