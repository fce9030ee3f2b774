// Calls that programs make and can do without, and requests whose effects only
// their number tells. Exits with 0 if each went as it should.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static void Check(int holds, const char* what) {
  if (!holds) {
    fprintf(stderr, "requests: not so: %s\n", what);
    exit(1);
  }
}

static void Interfaces(int socket) {
  struct ifreq list[8];
  memset(list, 0, sizeof(list));
  struct ifconf all = {.ifc_len = sizeof(list), .ifc_req = list};
  Check(ioctl(socket, SIOCGIFCONF, &all) == 0, "SIOCGIFCONF");
  Check(all.ifc_len % (int)sizeof(struct ifreq) == 0, "whole entries");
  struct ifreq loopback = {.ifr_name = "lo"};
  Check(ioctl(socket, SIOCGIFFLAGS, &loopback) == 0, "SIOCGIFFLAGS");
  Check((loopback.ifr_flags & IFF_LOOPBACK) != 0, "lo is a loopback");
}

static void Integers(int socket) {
  Check(prctl(PR_GET_SECUREBITS, 0, 0, 0, 0) >= 0, "PR_GET_SECUREBITS");
  (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, 0, 0, 0);
  (void)prctl(12345, 1, 2, 3, 4);
  (void)ioctl(socket, 0x4b4b, 7);
  (void)ioctl(socket, 0x4b4c, NULL);
}

static void Absent(void) {
  char parameters[120] = {0};
  void* context = NULL;
  Check(syscall(SYS_io_setup, 8, &context) == -1 && errno == ENOSYS,
        "io_setup");
  Check(syscall(425, 8, parameters) == -1 && errno == ENOSYS, "io_uring_setup");
}

static void Messages(void) {
  int ends[2];
  Check(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) == 0, "socketpair");
  char text[2][8] = {"one", "three"};
  struct iovec parts[2] = {{text[0], 3}, {text[1], 5}};
  struct mmsghdr messages[2];
  memset(messages, 0, sizeof(messages));
  for (int i = 0; i < 2; ++i) {
    messages[i].msg_hdr.msg_iov = &parts[i];
    messages[i].msg_hdr.msg_iovlen = 1;
  }
  Check(sendmmsg(ends[0], messages, 2, 0) == 2, "sendmmsg");
  Check(messages[0].msg_len == 3 && messages[1].msg_len == 5, "its lengths");
  parts[0].iov_len = parts[1].iov_len = 8;
  Check(recvmmsg(ends[1], messages, 2, 0, NULL) == 2, "recvmmsg");
  Check(memcmp(text[1], "three", 5) == 0, "the messages");
}

// As V8 does: memory where the program says, far above that of others.
static void HighMemory(void) {
  enum { kPage = 4096 };
  char* const wanted = (char*)0x600000000000;
  char* const high =
      mmap(wanted, 2 * kPage, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  Check(high == wanted, "memory where it was wanted");
  int ends[2];
  Check(pipe(ends) == 0 && write(ends[1], "abc", 3) == 3, "a pipe");
  Check(read(ends[0], high + kPage - 1, 3) == 3, "read");
  Check(memcmp(high + kPage - 1, "abc", 3) == 0, "what was read");
  const int program = open("/proc/self/exe", O_RDONLY);
  Check(
      mmap(high, kPage, PROT_READ, MAP_PRIVATE | MAP_FIXED, program, 0) == high,
      "a file there");
  Check(memcmp(high, "\177ELF", 4) == 0, "the file");
}

int main(void) {
  const int end = socket(AF_INET, SOCK_DGRAM, 0);
  if (end >= 0) {
    Interfaces(end);
  }
  Integers(end);
  Absent();
  Messages();
  HighMemory();
  return 0;
}
