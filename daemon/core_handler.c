// clew-core-handler: what the kernel starts for each core dump (core(5)), with
// the arguments of daemon/core_pattern.cc. Copies standard input to whoever
// handled core dumps before, whole and unchanged, and to a file that clewd
// gives, if it gives one within kAnswerMs. What the former gets never depends
// on the latter: the file is written by a child, which is left behind once it
// does not read for kStallMs.
//
// Exit status: that of the handler from before; without one, 0, or 1 if the
// core file could not be written.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/x86/page.h"
#include "daemon/core_next.h"

enum {
  kAnswerMs = 2000,
  kStallMs = 10000,
  kFinishMs = 60000,
  kBlockBytes = 65536,
};

// The core dump's file in clewd's spool.
struct Spool {
  int socket;  // -1: clewd wants none
  int file;
  uint64_t bytes_max;
  int pipe;       // to the child that writes the file
  pid_t process;  // that child
  bool cut;
};

static int ConnectToDaemon(const struct Dump* dump) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  snprintf(address.sun_path, sizeof(address.sun_path), "%s/run/clew/clewd.sock",
           dump->root);
  const struct timeval wait = {.tv_sec = kAnswerMs / 1000, .tv_usec = 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
  if (connect(fd, (const struct sockaddr*)&address, sizeof(address)) != 0) {
    close(fd);
    return -1;
  }
  return fd;
}

// `text` with everything that JSON would have to escape as '?'.
static void Plain(char* text) {
  for (; *text != '\0'; ++text) {
    if (*text < ' ' || *text > '~' || *text == '"' || *text == '\\') {
      *text = '?';
    }
  }
}

static void SendRequest(const struct Dump* dump, int fd) {
  char comm[64];
  char line[512];
  snprintf(comm, sizeof(comm), "%s", ValueOf(dump, 'e'));
  Plain(comm);
  const int size =
      snprintf(line, sizeof(line),
               "{\"do\":\"core\",\"pid\":%ld,\"tid\":%ld,\"signal\":%ld,"
               "\"time_s\":%ld,\"comm\":\"%s\"}\n",
               atol(ValueOf(dump, 'P')), atol(ValueOf(dump, 'I')),
               atol(ValueOf(dump, 's')), atol(ValueOf(dump, 't')), comm);
  WriteAll(fd, line, (size_t)size);
}

// One line, and the descriptor that came with it or -1.
static int ReceiveAnswer(int fd, char* line, size_t size) {
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
  } control;
  struct iovec part = {.iov_base = line, .iov_len = size - 1};
  struct msghdr message = {.msg_iov = &part,
                           .msg_iovlen = 1,
                           .msg_control = &control,
                           .msg_controllen = sizeof(control)};
  const ssize_t count = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
  line[count < 0 ? 0 : count] = '\0';
  const struct cmsghdr* header = CMSG_FIRSTHDR(&message);
  int passed = -1;
  if (count > 0 && header != NULL && header->cmsg_type == SCM_RIGHTS) {
    memcpy(&passed, CMSG_DATA(header), sizeof(passed));
  }
  return passed;
}

// In the child: the pipe to the file, blocks of zeros as holes, which cost no
// disk; with them it may be half as long again as `bytes_max`, since whoever
// sends and reads the file meets them as bytes. Its exit status says whether
// everything is there.
static int CopyToFile(int from, int file, uint64_t bytes_max) {
  static char bytes[CLEW_PAGE_BYTES];
  const uint64_t size_max = bytes_max + bytes_max / 2;
  uint64_t size = 0;
  uint64_t written = 0;
  for (;;) {
    size_t have = 0;
    while (have < sizeof(bytes)) {
      const ssize_t count = read(from, bytes + have, sizeof(bytes) - have);
      if (count < 0 && errno == EINTR) {
        continue;
      }
      if (count < 0) {
        return 1;
      }
      if (count == 0) {
        break;
      }
      have += (size_t)count;
    }
    if (have == 0) {
      return ftruncate(file, (off_t)size) == 0 ? 0 : 1;
    }
    if (have > size_max - size) {
      return 1;
    }
    if (!IsZero(bytes, have)) {
      written += have;
      if (written > bytes_max) {
        return 1;
      }
      if (lseek(file, (off_t)size, SEEK_SET) < 0 ||
          !WriteAll(file, bytes, have)) {
        return 1;
      }
    }
    size += have;
  }
}

static void StartCopy(struct Spool* spool) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return;
  }
  (void)fcntl(ends[1], F_SETPIPE_SZ, 1 << 20);  // less is slower, no more
  spool->process = fork();
  if (spool->process == 0) {
    close(ends[1]);
    close(STDIN_FILENO);
    _exit(CopyToFile(ends[0], spool->file, spool->bytes_max));
  }
  close(ends[0]);
  if (spool->process < 0) {
    close(ends[1]);
    return;
  }
  (void)fcntl(ends[1], F_SETFL, O_NONBLOCK);
  spool->pipe = ends[1];
}

// Whether nobody could have a core dump of the process: its hard limit is 0
// (proc(5), /proc/PID/limits), or cannot be read. The process waits in the
// kernel for us, so it is there.
static bool HardLimitIsZero(const struct Dump* dump) {
  char path[64];
  char line[256];
  char hard[32] = "0";
  snprintf(path, sizeof(path), "/proc/%s/limits", ValueOf(dump, 'P'));
  FILE* file = fopen(path, "re");
  while (file != NULL && fgets(line, sizeof(line), file) != NULL &&
         sscanf(line, "Max core file size %*s %31s", hard) != 1) {
  }
  if (file != NULL) {
    fclose(file);
  }
  return strcmp(hard, "0") == 0;
}

// A soft limit (%c) of 0 is what services and shells of Debian have without
// asking for it; it keeps core files out of their folders. Who wants no dump at
// all sets the hard limit, too ("ulimit -c 0" does), or is not dumpable
// (prctl(2)), and then the kernel starts nobody.
static bool WantsNone(const struct Dump* dump) {
  return strtoull(ValueOf(dump, 'c'), NULL, 10) == 0 && HardLimitIsZero(dump);
}

static struct Spool AskDaemon(const struct Dump* dump) {
  struct Spool spool = {.socket = -1, .file = -1, .pipe = -1};
  if (WantsNone(dump)) {
    return spool;
  }
  spool.socket = ConnectToDaemon(dump);
  if (spool.socket < 0) {
    return spool;
  }
  char line[1024];
  SendRequest(dump, spool.socket);
  spool.file = ReceiveAnswer(spool.socket, line, sizeof(line));
  const char* limit = strstr(line, "\"bytes_max\":");
  if (spool.file < 0 || limit == NULL) {
    return spool;
  }
  spool.bytes_max = strtoull(limit + strlen("\"bytes_max\":"), NULL, 10);
  StartCopy(&spool);
  return spool;
}

static void Keep(struct Spool* spool, const char* bytes, size_t size) {
  while (size > 0 && spool->pipe >= 0) {
    const ssize_t written = write(spool->pipe, bytes, size);
    if (written > 0) {
      bytes += written;
      size -= (size_t)written;
      continue;
    }
    struct pollfd wait = {.fd = spool->pipe, .events = POLLOUT};
    if (errno != EINTR && (errno != EAGAIN || poll(&wait, 1, kStallMs) <= 0)) {
      close(spool->pipe);
      spool->pipe = -1;
      spool->cut = true;
    }
  }
}

// Waits for the child, which has a pipe full to write, then leaves it behind.
static bool CopyIsWhole(const struct Spool* spool) {
  for (int waited_ms = 0; waited_ms < kFinishMs; waited_ms += 10) {
    int status = 0;
    if (waitpid(spool->process, &status, WNOHANG) == spool->process) {
      return WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
    usleep(10 * 1000);
  }
  return false;
}

static void FinishSpool(struct Spool* spool, uint64_t bytes) {
  if (spool->socket < 0 || spool->process <= 0) {
    return;
  }
  if (spool->pipe >= 0) {
    close(spool->pipe);
  }
  const bool whole = !spool->cut && CopyIsWhole(spool);
  char line[128];
  const int size =
      snprintf(line, sizeof(line),
               "{\"do\":\"core-done\",\"bytes\":%llu,\"whole\":%s}\n",
               (unsigned long long)bytes, whole ? "true" : "false");
  WriteAll(spool->socket, line, (size_t)size);
}

int main(int argc, char** argv) {
  struct Dump dump = {.root = ""};
  if (argc == kCoreSpecifierCount + 3 && strcmp(argv[1], "--root") == 0) {
    dump.root = argv[2];
    argv += 2;
    argc -= 2;
  }
  if (argc != kCoreSpecifierCount + 1) {
    fprintf(stderr,
            "usage: clew-core-handler [--root DIR] %%P %%p %%I %%i %%u %%g %%d "
            "%%s %%t %%c %%h %%e < core\n"
            "The kernel calls it; see clew daemon install-core-pattern.\n");
    return 2;
  }
  memcpy(dump.value, argv + 1, sizeof(dump.value));
  signal(SIGPIPE, SIG_IGN);
  // clewd first: it reads /proc of the process, and stops the trace.
  struct Spool spool = AskDaemon(&dump);
  struct Next next = OpenNext(&dump);
  static char bytes[kBlockBytes];
  uint64_t total = 0;
  for (;;) {
    const ssize_t count = read(STDIN_FILENO, bytes, sizeof(bytes));
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count <= 0) {
      break;
    }
    PassOn(&next, bytes, (size_t)count);
    Keep(&spool, bytes, (size_t)count);
    total += (uint64_t)count;
  }
  const bool whole = CloseNext(&next);
  FinishSpool(&spool, total);
  return WaitForNext(&next, whole);
}
