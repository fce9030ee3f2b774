// Three threads in a chain of a pipe, a socket pair and an eventfd; nothing but
// these keeps them in order. The end is always the same assertion.
#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

static int pipe_ends[2], sockets[2], event;
static volatile int first, second, third;

static void* WritePipe(void* unused) {
  first = 42;
  assert(write(pipe_ends[1], "ab", 2) == 2);
  return unused;
}

static void* PipeToSocket(void* unused) {
  char byte;
  for (int i = 0; i < 2; ++i) {
    assert(read(pipe_ends[0], &byte, 1) == 1);
    second = first + byte - 'a';
    assert(send(sockets[0], &byte, 1, 0) == 1);
  }
  return unused;
}

static void* SocketToEvent(void* unused) {
  char byte;
  for (int i = 0; i < 2; ++i) {
    assert(recv(sockets[1], &byte, 1, 0) == 1);
    const uint64_t value = (uint64_t)(byte - 'a' + 1);
    assert(write(event, &value, sizeof(value)) == sizeof(value));
  }
  third = second;
  return unused;
}

int main(void) {
  void* (*const work[])(void*) = {SocketToEvent, PipeToSocket, WritePipe};
  pthread_t threads[3];
  uint64_t sum = 0;
  if (pipe(pipe_ends) != 0 ||
      socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0 ||
      (event = eventfd(0, 0)) < 0) {
    return 2;
  }
  for (int i = 0; i < 3; ++i) {
    pthread_create(&threads[i], NULL, work[i], NULL);
  }
  while (sum < 3) {
    uint64_t value;
    assert(read(event, &value, sizeof(value)) == sizeof(value));
    sum += value;
  }
  for (int i = 0; i < 3; ++i) {
    pthread_join(threads[i], NULL);
  }
  assert(third == 43 && sum != 3);
  return 0;
}
