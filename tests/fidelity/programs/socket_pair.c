// Bytes go both ways, a half is shut down, and the other side sees the end:
// socketpair(2), shutdown(2).
#include <sys/socket.h>

#include "check.h"

int main(void) {
  int ends[2];
  char text[8];
  CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  CHECK(send(ends[0], "there", 5, 0) == 5 && write(ends[1], "back", 4) == 4);
  CHECK(recv(ends[1], text, 8, MSG_PEEK) == 5 &&
        recv(ends[1], text, 8, 0) == 5);
  CHECK(read(ends[0], text, 8) == 4 && text[0] == 'b');
  CHECK_FAILS(recv(ends[0], text, 8, MSG_DONTWAIT), EAGAIN);
  CHECK(shutdown(ends[0], SHUT_WR) == 0);
  CHECK(read(ends[1], text, 8) == 0 && write(ends[1], "x", 1) == 1);
  CHECK_FAILS(send(ends[0], "x", 1, MSG_NOSIGNAL), EPIPE);
  return Ok();
}
