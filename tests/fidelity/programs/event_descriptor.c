// A counter is added to and taken, at once or one by one: eventfd(2).
#include <poll.h>
#include <stdint.h>
#include <sys/eventfd.h>

#include "check.h"

int main(void) {
  uint64_t value = 3;
  const int fd = eventfd(2, EFD_NONBLOCK);
  CHECK(write(fd, &value, 8) == 8);
  CHECK(read(fd, &value, 8) == 8 && value == 5);
  CHECK_FAILS(read(fd, &value, 8), EAGAIN);
  value = UINT64_MAX - 1;
  CHECK(write(fd, &value, 8) == 8);
  struct pollfd ready = {.fd = fd, .events = POLLIN | POLLOUT};
  CHECK(poll(&ready, 1, 0) == 1 && ready.revents == POLLIN);
  value = 1;
  CHECK_FAILS(write(fd, &value, 8), EAGAIN);
  const int single = eventfd(2, EFD_SEMAPHORE | EFD_NONBLOCK);
  CHECK(read(single, &value, 8) == 8 && value == 1);
  CHECK(read(single, &value, 8) == 8 && value == 1);
  CHECK_FAILS(read(single, &value, 8), EAGAIN);
  return Ok();
}
