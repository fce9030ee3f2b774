// Calls that wait and then write into memory at which another thread looks
// meanwhile: it still sees what was there. Exits with 0 if that was so for each
// call.
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { kOld = 'o', kNew = 'n' };

// What the calls write, each at its first byte.
static union {
  char text[8];
  struct pollfd poll;
  struct epoll_event event;
  struct {
    long type;
    char text[8];
  } message;
} at;

static int ends[2];  // a socket pair for datagrams: [0] reads
static int poller;
static int queue;
static struct iovec part = {at.text, sizeof at.text};

static void Check(int holds, const char* what) {
  if (!holds) {
    fprintf(stderr, "late_writes: not so: %s: %s\n", what, strerror(errno));
    exit(1);
  }
}

struct Case {
  const char* name;
  const volatile char* watched;  // changes when the call returns
  long (*wait)(void);
};

static void Drain(void) {
  char text[8];
  Check(recv(ends[0], text, sizeof text, 0) > 0, "a datagram was there");
}

static long Read(void) { return read(ends[0], at.text, sizeof at.text); }
static long Readv(void) { return readv(ends[0], &part, 1); }
static long Receive(void) {
  return recvfrom(ends[0], at.text, sizeof at.text, 0, NULL, NULL);
}
static long ReceiveMessage(void) {
  struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
  return recvmsg(ends[0], &header, 0);
}
static long ReceiveMessages(void) {
  struct mmsghdr header = {.msg_hdr = {.msg_iov = &part, .msg_iovlen = 1}};
  return recvmmsg(ends[0], &header, 1, 0, NULL);
}
static long Poll(void) {
  at.poll.fd = ends[0];
  at.poll.events = POLLIN;
  const int ready = poll(&at.poll, 1, -1);
  Drain();
  return ready;
}
static long Epoll(void) {
  const int ready = epoll_pwait(poller, &at.event, 1, -1, NULL);
  Drain();
  return ready;
}
static long ReceiveFromQueue(void) {
  return msgrcv(queue, &at.message, sizeof at.message.text, 0, 0);
}

static const struct Case kCases[] = {
    {"read", at.text, Read},
    {"readv", at.text, Readv},
    {"recvfrom", at.text, Receive},
    {"recvmsg", at.text, ReceiveMessage},
    {"recvmmsg", at.text, ReceiveMessages},
    {"poll", (const char*)&at.poll.revents, Poll},
    {"epoll_pwait", (const char*)&at.event, Epoll},
    {"msgrcv", at.message.text, ReceiveFromQueue},
};

static void* Answer(void* argument) {
  const struct Case* const call = argument;
  usleep(2000);  // most likely the other one waits by now
  Check(*call->watched == kOld, call->name);
  struct {
    long type;
    char text[8];
  } message = {1, {kNew}};
  if (call->wait == ReceiveFromQueue) {
    Check(msgsnd(queue, &message, sizeof message.text, 0) == 0, "msgsnd");
  } else {
    Check(write(ends[1], message.text, 3) == 3, "write");
  }
  return NULL;
}

int main(void) {
  struct epoll_event wanted = {.events = EPOLLIN};
  Check(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) == 0, "socketpair");
  poller = epoll_create1(0);
  Check(epoll_ctl(poller, EPOLL_CTL_ADD, ends[0], &wanted) == 0, "epoll_ctl");
  queue = msgget(IPC_PRIVATE, 0600);
  Check(queue >= 0, "msgget");
  for (size_t i = 0; i < sizeof kCases / sizeof kCases[0]; ++i) {
    pthread_t answer;
    memset(&at, kOld, sizeof at);
    Check(pthread_create(&answer, NULL, Answer, (void*)&kCases[i]) == 0,
          "a thread");
    Check(kCases[i].wait() > 0, kCases[i].name);
    Check(*kCases[i].watched != kOld, kCases[i].name);
    pthread_join(answer, NULL);
  }
  msgctl(queue, IPC_RMID, NULL);
  return 0;
}
