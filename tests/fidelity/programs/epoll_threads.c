// One thread waits for two pipes that others write to, and takes all of it:
// epoll_wait(2).
#include <pthread.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "check.h"

static int pipes[2][2];
static void* Write(void* number) {
  for (int i = 0; i < 5; ++i) {
    CHECK(write(pipes[(intptr_t)number][1], "x", 1) == 1);
  }
  return NULL;
}

int main(void) {
  const int set = epoll_create1(0);
  pthread_t threads[2];
  for (intptr_t i = 0; i < 2; ++i) {
    CHECK(pipe(pipes[i]) == 0);
    struct epoll_event event = {.events = EPOLLIN,
                                .data = {.u32 = (uint32_t)i}};
    CHECK(epoll_ctl(set, EPOLL_CTL_ADD, pipes[i][0], &event) == 0);
    CHECK(pthread_create(&threads[i], NULL, Write, (void*)i) == 0);
  }
  ssize_t bytes[2] = {0, 0};
  while (bytes[0] + bytes[1] < 10) {
    struct epoll_event events[2];
    const int count = epoll_wait(set, events, 2, -1);
    CHECK(count >= 1);
    for (int i = 0; i < count; ++i) {
      char text[8];
      const uint32_t which = events[i].data.u32;
      bytes[which] += read(pipes[which][0], text, sizeof(text));
    }
  }
  CHECK(bytes[0] == 5 && bytes[1] == 5);
  CHECK(pthread_join(threads[0], NULL) == 0);
  CHECK(pthread_join(threads[1], NULL) == 0);
  return Ok();
}
