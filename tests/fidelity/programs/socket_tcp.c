// A client connects to a server on this host, each knows the other's address,
// and a refused one is told: tcp(7), accept(2).
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>

#include "check.h"

static struct sockaddr_in address;
static void* Serve(void* server) {
  struct sockaddr_in peer;
  socklen_t size = sizeof(peer);
  const int fd = accept(*(int*)server, (struct sockaddr*)&peer, &size);
  char text[8];
  CHECK(fd >= 0 && size == sizeof(peer) && peer.sin_family == AF_INET);
  CHECK(recv(fd, text, 5, MSG_WAITALL) == 5);
  CHECK(send(fd, "reply", 5, 0) == 5 && close(fd) == 0);
  return NULL;
}

int main(void) {
  int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  socklen_t size = sizeof(address);
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  CHECK(bind(server, (struct sockaddr*)&address, size) == 0);
  CHECK(getsockname(server, (struct sockaddr*)&address, &size) == 0);
  const int early = socket(AF_INET, SOCK_STREAM, 0);
  CHECK_FAILS(connect(early, (struct sockaddr*)&address, size), ECONNREFUSED);
  CHECK(listen(server, 1) == 0 && address.sin_port != 0);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, Serve, &server) == 0);
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  CHECK(connect(fd, (struct sockaddr*)&address, size) == 0);
  CHECK(send(fd, "hello", 5, 0) == 5);
  char text[8];
  CHECK(recv(fd, text, 8, MSG_WAITALL) == 5 && text[4] == 'y');
  CHECK(pthread_join(thread, NULL) == 0);
  return Ok();
}
