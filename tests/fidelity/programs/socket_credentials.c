// The other side's process is told: unix(7), SO_PEERCRED, SCM_CREDENTIALS.
#include <string.h>
#include <sys/socket.h>

#include "check.h"

int main(void) {
  int ends[2];
  CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  struct ucred peer;
  socklen_t size = sizeof(peer);
  CHECK(getsockopt(ends[0], SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0);
  CHECK(peer.pid == getpid() && peer.uid == geteuid());
  const int on = 1;
  CHECK(setsockopt(ends[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) == 0);
  CHECK(write(ends[0], "x", 1) == 1);
  char byte;
  char space[CMSG_SPACE(sizeof(peer))] __attribute__((aligned(8)));
  struct iovec part = {&byte, 1};
  struct msghdr message = {.msg_iov = &part,
                           .msg_iovlen = 1,
                           .msg_control = space,
                           .msg_controllen = sizeof(space)};
  CHECK(recvmsg(ends[1], &message, 0) == 1);
  struct cmsghdr* control = CMSG_FIRSTHDR(&message);
  CHECK(control != NULL && control->cmsg_type == SCM_CREDENTIALS);
  memcpy(&peer, CMSG_DATA(control), sizeof(peer));
  CHECK(peer.pid == getpid() && peer.uid == getuid());
  return Ok();
}
