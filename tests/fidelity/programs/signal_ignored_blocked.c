// A signal that is ignored, but blocked by the first thread, is not dropped: it
// interrupts the call of another thread: signal(7), prepare_signal in
// kernel/signal.c.
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "check.h"

static void* Wait(void* unused) {
  const int queue = epoll_create1(0);
  struct epoll_event event;
  CHECK_FAILS(epoll_wait(queue, &event, 1, -1), EINTR);
  return unused;
}

int main(void) {
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, Wait, NULL) == 0);
  sigset_t ignored;
  sigemptyset(&ignored);
  sigaddset(&ignored, SIGURG);
  CHECK(pthread_sigmask(SIG_BLOCK, &ignored, NULL) == 0);
  usleep(20000);
  CHECK(kill(getpid(), SIGURG) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
  return Ok();
}
