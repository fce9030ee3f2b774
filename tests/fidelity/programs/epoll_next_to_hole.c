// Events that fit are written although the page behind them is not there:
// epoll_wait(2).
#include <sys/epoll.h>
#include <sys/mman.h>

#include "check.h"

int main(void) {
  const int set = epoll_create1(0);
  int ends[2];
  CHECK(pipe(ends) == 0 && write(ends[1], "x", 1) == 1);
  struct epoll_event event = {.events = EPOLLIN, .data = {.u64 = 77}};
  CHECK(epoll_ctl(set, EPOLL_CTL_ADD, ends[0], &event) == 0);
  char* map = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(map != MAP_FAILED && munmap(map + 4096, 4096) == 0);
  struct epoll_event* last = (struct epoll_event*)(map + 4096) - 1;
  CHECK(epoll_wait(set, last, 4, 0) == 1);
  CHECK(last->data.u64 == 77);
  return Ok();
}
