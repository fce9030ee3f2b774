// What is ready is told again and again, or at its edge alone, or once:
// epoll(7).
#include <sys/epoll.h>

#include "check.h"

static int set;
static int ends[2];
static int Told(void) {
  struct epoll_event event = {0};
  const int count = epoll_wait(set, &event, 1, 0);
  CHECK(count == 0 || event.data.fd == ends[0]);
  return count;
}

static void Change(int operation, unsigned events) {
  struct epoll_event event = {.events = events, .data = {.fd = ends[0]}};
  CHECK(epoll_ctl(set, operation, ends[0], &event) == 0);
}

int main(void) {
  set = epoll_create1(EPOLL_CLOEXEC);
  CHECK(set >= 0 && pipe(ends) == 0);
  Change(EPOLL_CTL_ADD, EPOLLIN);
  CHECK(Told() == 0 && write(ends[1], "x", 1) == 1);
  CHECK(Told() == 1 && Told() == 1);
  Change(EPOLL_CTL_MOD, EPOLLIN | EPOLLET);
  CHECK(Told() == 1 && Told() == 0);
  CHECK(write(ends[1], "x", 1) == 1 && Told() == 1 && Told() == 0);
  Change(EPOLL_CTL_MOD, EPOLLIN | EPOLLONESHOT);
  CHECK(Told() == 1 && write(ends[1], "x", 1) == 1 && Told() == 0);
  Change(EPOLL_CTL_DEL, 0);
  CHECK(Told() == 0);
  CHECK_FAILS(epoll_ctl(set, EPOLL_CTL_DEL, ends[0], NULL), ENOENT);
  return Ok();
}
