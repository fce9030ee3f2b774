// Each datagram is received whole or cut, with its sender's address, and many
// at once: udp(7), recvmmsg(2).
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "check.h"

int main(void) {
  const int in = socket(AF_INET, SOCK_DGRAM, 0);
  const int out = socket(AF_INET, SOCK_DGRAM, 0);
  struct sockaddr_in to = {.sin_family = AF_INET};
  struct sockaddr_in from;
  socklen_t size = sizeof(to);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  CHECK(bind(in, (struct sockaddr*)&to, size) == 0);
  CHECK(getsockname(in, (struct sockaddr*)&to, &size) == 0);
  CHECK(sendto(out, "first", 5, 0, (struct sockaddr*)&to, size) == 5);
  char text[2][4];
  CHECK(recvfrom(in, text[0], 4, MSG_TRUNC, (struct sockaddr*)&from, &size) ==
        5);
  CHECK(from.sin_addr.s_addr == htonl(INADDR_LOOPBACK) && from.sin_port != 0);
  CHECK(connect(out, (struct sockaddr*)&to, size) == 0);
  CHECK(send(out, "a", 1, 0) == 1 && send(out, "bc", 2, 0) == 2);
  struct iovec parts[2] = {{text[0], 4}, {text[1], 4}};
  struct mmsghdr many[2] = {{{.msg_iov = &parts[0], .msg_iovlen = 1}, 0},
                            {{.msg_iov = &parts[1], .msg_iovlen = 1}, 0}};
  CHECK(recvmmsg(in, many, 2, 0, NULL) == 2);
  CHECK(many[0].msg_len == 1 && many[1].msg_len == 2 && text[1][1] == 'c');
  return Ok();
}
