// A receive ends with EAGAIN after the time that was set: socket(7),
// SO_RCVTIMEO.
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>

#include "check.h"

int main(void) {
  int ends[2];
  CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  const struct timeval limit = {0, 20000};
  CHECK(setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) ==
        0);
  struct timespec begin;
  struct timespec end;
  char byte;
  CHECK(clock_gettime(CLOCK_MONOTONIC, &begin) == 0);
  CHECK_FAILS(recv(ends[0], &byte, 1, 0), EAGAIN);
  CHECK(clock_gettime(CLOCK_MONOTONIC, &end) == 0);
  const long passed =
      (end.tv_sec - begin.tv_sec) * 1000000000 + end.tv_nsec - begin.tv_nsec;
  CHECK(passed >= 20000000);
  return Ok();
}
