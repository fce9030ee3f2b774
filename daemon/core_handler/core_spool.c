#define _GNU_SOURCE
#include "daemon/core_handler/core_spool.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/x86/page.h"

enum {
  kFinishMs = 60000,
  kPageBytes = CLEW_PAGE_BYTES,
  kSignOfLifeBytes = 1 << 20,
};

static int ConnectToDaemon(const struct Dump* dump) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  snprintf(address.sun_path, sizeof(address.sun_path), "%s/run/clew/clewd.sock",
           dump->root);
  const struct timeval wait = {.tv_sec = dump->answer_ms / 1000, .tv_usec = 0};
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

// In the child: the file, blocks of zeros as holes, which cost no disk; with
// them it may be half as long again as `bytes_max`, since whoever sends and
// reads the file meets them as bytes.
struct Copy {
  int file;
  uint64_t bytes_max;
  uint64_t size;
  uint64_t written;
  int life;  // -1, or where a byte is written now and then
  uint64_t life_at;
};

// The child's exit status.
static int EndOf(const struct Copy* copy, enum DumpEnd end) {
  return end == kDumpWhole && ftruncate(copy->file, (off_t)copy->size) != 0
             ? kDumpRefused
             : (int)end;
}

static void ShowLife(struct Copy* copy) {
  if (copy->life >= 0 && copy->size + copy->written > copy->life_at) {
    copy->life_at = copy->size + copy->written + kSignOfLifeBytes;
    (void)!write(copy->life, "", 1);
  }
}

static bool SkipInCopy(void* to, uint64_t size) {
  struct Copy* const copy = to;
  if (size > copy->bytes_max + copy->bytes_max / 2 - copy->size) {
    return false;
  }
  copy->size += size;
  ShowLife(copy);
  return true;
}

static bool PutPage(struct Copy* copy, const char* bytes, size_t size) {
  if (!IsZero(bytes, size)) {
    if (size > copy->bytes_max - copy->written ||
        lseek(copy->file, (off_t)copy->size, SEEK_SET) < 0 ||
        !WriteAll(copy->file, bytes, size)) {
      return false;
    }
    copy->written += size;
  }
  return SkipInCopy(copy, size);
}

static bool PutInCopy(void* to, const char* bytes, size_t size) {
  while (size > 0) {
    const size_t part = size < kPageBytes ? size : kPageBytes;
    if (!PutPage(to, bytes, part)) {
      return false;
    }
    bytes += part;
    size -= part;
  }
  return true;
}

// In the child: what Keep gives, in whole pages but for the last one.
static int CopyPipe(int from, struct Copy* copy) {
  static char bytes[kPageBytes];
  for (;;) {
    size_t have = 0;
    while (have < sizeof(bytes)) {
      const ssize_t count = read(from, bytes + have, sizeof(bytes) - have);
      if (count < 0 && errno == EINTR) {
        continue;
      }
      if (count < 0) {
        return kDumpRefused;
      }
      if (count == 0) {
        break;
      }
      have += (size_t)count;
    }
    if (have == 0) {
      return EndOf(copy, kDumpWhole);
    }
    if (!PutInCopy(copy, bytes, have)) {
      return kDumpRefused;
    }
  }
}

static struct Copy CopyOf(const struct CoreSpool* spool, int life) {
  return (struct Copy){
      .file = spool->file, .bytes_max = spool->bytes_max, .life = life};
}

void StartKeeping(struct CoreSpool* spool) {
  int ends[2];
  if (spool->file < 0) {
    return;
  }
  spool->cut = pipe2(ends, O_CLOEXEC) != 0;
  if (spool->cut) {
    return;
  }
  (void)fcntl(ends[1], F_SETPIPE_SZ, 1 << 20);  // less is slower, no more
  spool->process = fork();
  if (spool->process == 0) {
    close(ends[1]);
    close(STDIN_FILENO);
    struct Copy copy = CopyOf(spool, -1);
    _exit(CopyPipe(ends[0], &copy));
  }
  close(ends[0]);
  if (spool->process < 0) {
    close(ends[1]);
    spool->cut = true;
    return;
  }
  (void)fcntl(ends[1], F_SETFL, O_NONBLOCK);
  spool->pipe = ends[1];
}

// In the child.
static int CopyMemory(const struct Dump* dump, const struct DumpHead* head,
                      struct Copy* copy) {
  const struct DumpSink sink = {
      .put = PutInCopy, .skip = SkipInCopy, .to = copy};
  struct DumpMemory memory;
  if (!OpenDumpMemory(dump, STDIN_FILENO, head, &memory)) {
    return kDumpUnreadable;
  }
  close(STDIN_FILENO);  // so that the process can go without this one
  return EndOf(copy, CopyDump(head, &memory, sink));
}

void StartCopyingMemory(struct CoreSpool* spool, const struct Dump* dump,
                        const struct DumpHead* head) {
  int ends[2];
  if (spool->file < 0) {
    return;
  }
  spool->cut = pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0;
  if (spool->cut) {
    return;
  }
  spool->process = fork();
  if (spool->process == 0) {
    close(ends[0]);
    struct Copy copy = CopyOf(spool, ends[1]);
    _exit(CopyMemory(dump, head, &copy));
  }
  close(ends[1]);
  spool->pipe = ends[0];
  spool->cut = spool->process < 0;
}

enum DumpEnd WaitForCopy(struct CoreSpool* spool) {
  if (spool->process <= 0) {
    return kDumpWhole;
  }
  char signs[256];
  ssize_t count = -1;
  while (count != 0) {
    struct pollfd wait = {.fd = spool->pipe, .events = POLLIN};
    const int ready = poll(&wait, 1, spool->stall_ms);
    if (ready == 0 || (ready < 0 && errno != EINTR)) {
      kill(spool->process, SIGKILL);
      spool->cut = true;
      return kDumpRefused;
    }
    count = read(spool->pipe, signs, sizeof(signs));
  }
  int status = 0;
  while (waitpid(spool->process, &status, 0) < 0 && errno == EINTR) {
  }
  spool->process = 0;
  spool->cut = !WIFEXITED(status) || WEXITSTATUS(status) != kDumpWhole;
  return WIFEXITED(status) ? (enum DumpEnd)WEXITSTATUS(status) : kDumpRefused;
}

void BeginAgain(struct CoreSpool* spool) {
  if (spool->pipe >= 0) {
    close(spool->pipe);
    spool->pipe = -1;
  }
  // A child that was left behind still writes.
  if (spool->process > 0 || spool->file < 0 || ftruncate(spool->file, 0) != 0) {
    spool->file = -1;
    return;
  }
  spool->cut = false;
}

// Returns whether no core dump of the process is allowed: its hard limit is 0
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
// (prctl(2)), and then the kernel does not start this program.
static bool WantsNone(const struct Dump* dump) {
  return strtoull(ValueOf(dump, 'c'), NULL, 10) == 0 && HardLimitIsZero(dump);
}

struct CoreSpool AskDaemon(const struct Dump* dump) {
  struct CoreSpool spool = {
      .socket = -1, .file = -1, .stall_ms = dump->stall_ms, .pipe = -1};
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
    spool.file = -1;
    return spool;
  }
  spool.bytes_max = strtoull(limit + strlen("\"bytes_max\":"), NULL, 10);
  return spool;
}

void Keep(struct CoreSpool* spool, const char* bytes, size_t size) {
  while (size > 0 && spool->pipe >= 0) {
    const ssize_t written = write(spool->pipe, bytes, size);
    if (written > 0) {
      bytes += written;
      size -= (size_t)written;
      continue;
    }
    struct pollfd wait = {.fd = spool->pipe, .events = POLLOUT};
    if (errno != EINTR &&
        (errno != EAGAIN || poll(&wait, 1, spool->stall_ms) <= 0)) {
      close(spool->pipe);
      spool->pipe = -1;
      spool->cut = true;
    }
  }
}

// Waits for the child, which has a pipe full to write, then leaves it behind.
static bool IsKept(const struct CoreSpool* spool) {
  for (int waited_ms = 0; waited_ms < kFinishMs; waited_ms += 10) {
    int status = 0;
    if (waitpid(spool->process, &status, WNOHANG) == spool->process) {
      return WIFEXITED(status) && WEXITSTATUS(status) == kDumpWhole;
    }
    usleep(10 * 1000);
  }
  return false;
}

void FinishSpool(struct CoreSpool* spool, uint64_t bytes) {
  if (spool->socket < 0 || spool->file < 0) {
    return;
  }
  if (spool->pipe >= 0) {
    close(spool->pipe);
  }
  const bool kept = !spool->cut && (spool->process <= 0 || IsKept(spool));
  const bool whole = kept && !spool->ended_early;
  char line[128];
  const int size =
      snprintf(line, sizeof(line),
               "{\"do\":\"core-done\",\"bytes\":%llu,\"whole\":%s}\n",
               (unsigned long long)bytes, whole ? "true" : "false");
  WriteAll(spool->socket, line, (size_t)size);
}
