// An open file goes through a socket and has a new number there: unix(7),
// SCM_RIGHTS.
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

#include "check.h"

int main(void) {
  int ends[2];
  CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) == 0);
  const int fd = open("file", O_RDWR | O_CREAT, 0600);
  CHECK(write(fd, "through", 7) == 7);
  char byte = 'x';
  char space[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8))) = {0};
  struct iovec part = {&byte, 1};
  struct msghdr message = {.msg_iov = &part,
                           .msg_iovlen = 1,
                           .msg_control = space,
                           .msg_controllen = sizeof(space)};
  struct cmsghdr* control = CMSG_FIRSTHDR(&message);
  control->cmsg_level = SOL_SOCKET;
  control->cmsg_type = SCM_RIGHTS;
  control->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(control), &fd, sizeof(fd));
  CHECK(sendmsg(ends[0], &message, 0) == 1);
  memset(space, 0, sizeof(space));
  CHECK(recvmsg(ends[1], &message, MSG_CMSG_CLOEXEC) == 1);
  int passed;
  memcpy(&passed, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(passed));
  CHECK(passed != fd && fcntl(passed, F_GETFD) == FD_CLOEXEC);
  char text[8];
  CHECK(pread(passed, text, 8, 0) == 7 && text[6] == 'h');
  return Ok();
}
