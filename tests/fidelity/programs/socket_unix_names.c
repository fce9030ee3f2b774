// A socket has a name in a folder or an abstract one, and a datagram's sender
// is told by it: unix(7).
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "check.h"

int main(void) {
  const int server = socket(AF_UNIX, SOCK_DGRAM, 0);
  const int client = socket(AF_UNIX, SOCK_DGRAM, 0);
  struct sockaddr_un name = {AF_UNIX, "server"};
  CHECK(bind(server, (struct sockaddr*)&name, sizeof(name)) == 0);
  CHECK(access("server", F_OK) == 0);
  CHECK_FAILS(bind(client, (struct sockaddr*)&name, sizeof(name)), EADDRINUSE);
  CHECK(bind(client, (struct sockaddr*)&name, sizeof(sa_family_t)) == 0);
  CHECK(sendto(client, "hi", 2, 0, (struct sockaddr*)&name, sizeof(name)) == 2);
  struct sockaddr_un from;
  socklen_t size = sizeof(from);
  char text[4];
  CHECK(recvfrom(server, text, 4, 0, (struct sockaddr*)&from, &size) == 2);
  CHECK(size == offsetof(struct sockaddr_un, sun_path) + 6);
  CHECK(from.sun_path[0] == '\0');
  return Ok();
}
