// Options are set and told: getsockopt(2), socket(7).
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "check.h"

static int Told(int fd, int level, int option) {
  int value = -1;
  socklen_t size = sizeof(value);
  CHECK(getsockopt(fd, level, option, &value, &size) == 0 && size == 4);
  return value;
}

int main(void) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  const int on = 1;
  CHECK(Told(fd, SOL_SOCKET, SO_TYPE) == SOCK_STREAM);
  CHECK(Told(fd, SOL_SOCKET, SO_REUSEADDR) == 0);
  CHECK(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0);
  CHECK(Told(fd, SOL_SOCKET, SO_REUSEADDR) == 1);
  CHECK(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0);
  CHECK(Told(fd, IPPROTO_TCP, TCP_NODELAY) == 1);
  const struct linger linger = {1, 7};
  struct linger told = {0, 0};
  socklen_t size = sizeof(told);
  CHECK(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)) == 0);
  CHECK(getsockopt(fd, SOL_SOCKET, SO_LINGER, &told, &size) == 0);
  CHECK(told.l_onoff == 1 && told.l_linger == 7);
  CHECK_FAILS(setsockopt(fd, SOL_SOCKET, 9999, &on, sizeof(on)), ENOPROTOOPT);
  return Ok();
}
