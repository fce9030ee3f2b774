// A signal that is ignored interrupts no call, not even one that is never
// restarted: SIGURG comes and a child process ends while a thread waits in
// epoll_wait(2): signal(7).
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { kSignals = 100 };

static int to_thread[2];

static void* Wait(void* unused) {
  const int queue = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN};
  CHECK(epoll_ctl(queue, EPOLL_CTL_ADD, to_thread[0], &event) == 0);
  CHECK(epoll_wait(queue, &event, 1, -1) == 1);
  char byte;
  CHECK(read(to_thread[0], &byte, 1) == 1);
  return unused;
}

int main(void) {
  CHECK(pipe(to_thread) == 0);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, Wait, NULL) == 0);
  usleep(20000);
  const pid_t child = fork();
  if (child == 0) {
    for (int i = 0; i < kSignals; ++i) {
      CHECK(kill(getppid(), SIGURG) == 0);
      usleep(500);
    }
    _exit(0);
  }
  // Not asleep, so that a recorder may have it stopped.
  while (waitpid(child, NULL, WNOHANG) == 0) {
  }
  CHECK(write(to_thread[1], "x", 1) == 1);
  CHECK(pthread_join(thread, NULL) == 0);
  return Ok();
}
