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
#include <sys/fsuid.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
  kAnswerMs = 2000,
  kStallMs = 10000,
  kFinishMs = 60000,
  kBlockBytes = 65536,
  kPageBytes = 4096,
  kPatternMax = 4096,
  kArgumentsMax = 64,
};

// In the order of the pattern: %P %p %I %i %u %g %d %s %t %c %h %e.
static const char kSpecifiers[] = "PpIiugdstche";
enum { kSpecifierCount = sizeof(kSpecifiers) - 1 };

struct Dump {
  char* value[kSpecifierCount];
  const char* root;  // what all paths begin with; for tests
};

static const char* ValueOf(const struct Dump* dump, char specifier) {
  const char* at = strchr(kSpecifiers, specifier);
  return at == NULL || specifier == '\0' ? NULL : dump->value[at - kSpecifiers];
}

static void Complain(const char* what) {
  fprintf(stderr, "clew-core-handler: %s: %s\n", what, strerror(errno));
}

static bool WriteAll(int fd, const char* bytes, size_t size) {
  while (size > 0) {
    const ssize_t written = write(fd, bytes, size);
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written <= 0) {
      return false;
    }
    bytes += written;
    size -= (size_t)written;
  }
  return true;
}

// --- Whoever was there before ---

// The path of the program with '!' for '/', as %E has it.
static void AppendProgram(const struct Dump* dump, char* text, size_t size) {
  char link[64];
  char path[kPatternMax];
  snprintf(link, sizeof(link), "/proc/%s/exe", ValueOf(dump, 'P'));
  const ssize_t length = readlink(link, path, sizeof(path) - 1);
  path[length < 0 ? 0 : length] = '\0';
  const size_t used = strlen(text);
  snprintf(text + used, size - used, "%s",
           length < 0 ? ValueOf(dump, 'e') : path);
  for (char* c = text + used; *c != '\0'; ++c) {
    *c = *c == '/' ? '!' : *c;
  }
}

// core(5): "Naming of core dump files". In a file's name '/' in a value is '!'.
static void Expand(const struct Dump* dump, const char* pattern, bool file,
                   char* text, size_t size) {
  text[0] = '\0';
  for (; *pattern != '\0'; ++pattern) {
    const size_t used = strlen(text);
    if (*pattern != '%') {
      snprintf(text + used, size - used, "%c", *pattern);
      continue;
    }
    ++pattern;
    const char* value = ValueOf(dump, *pattern);
    if (*pattern == '\0') {
      return;  // a single % at the end is dropped
    }
    if (*pattern == '%') {
      snprintf(text + used, size - used, "%%");
    } else if (*pattern == 'E') {
      AppendProgram(dump, text, size);
    } else if (value != NULL) {
      snprintf(text + used, size - used, "%s", value);
      for (char* c = text + used; file && *c != '\0'; ++c) {
        *c = *c == '/' ? '!' : *c;
      }
    }
  }
}

// Where the core dump goes on to.
struct Next {
  int fd;           // -1: nowhere
  pid_t process;    // of a handler; 0: a file
  uint64_t limit;   // of bytes
  uint64_t passed;  // so far
};

static void StartHandler(const struct Dump* dump, char* pattern,
                         struct Next* next) {
  static char texts[kArgumentsMax][kPatternMax];
  char* arguments[kArgumentsMax + 1] = {NULL};
  int count = 0;
  char* place = NULL;
  for (char* word = strtok_r(pattern, " \t", &place);
       word != NULL && count < kArgumentsMax;
       word = strtok_r(NULL, " \t", &place)) {
    Expand(dump, word, false, texts[count], sizeof(texts[count]));
    arguments[count] = texts[count];
    ++count;
  }
  int ends[2];
  if (count == 0 || pipe2(ends, O_CLOEXEC) != 0) {
    Complain("cannot pass the core dump on");
    return;
  }
  next->process = fork();
  if (next->process == 0) {
    dup2(ends[0], STDIN_FILENO);
    signal(SIGPIPE, SIG_DFL);
    execv(arguments[0], arguments);
    Complain(arguments[0]);
    _exit(127);
  }
  close(ends[0]);
  next->fd = ends[1];
}

// As the kernel does it (fs/coredump.c): as the user of the process, relative
// to its working directory, no link, a file of that user with one name.
static void OpenFile(const struct Dump* dump, const char* pattern,
                     struct Next* next) {
  char path[kPatternMax];
  char folder[64];
  next->limit = strtoull(ValueOf(dump, 'c'), NULL, 10);
  const uid_t user = (uid_t)strtoul(ValueOf(dump, 'u'), NULL, 10);
  const gid_t group = (gid_t)strtoul(ValueOf(dump, 'g'), NULL, 10);
  // %d of 2: suid_dumpable, root alone may read it, and only at a fixed place.
  const bool guarded = atoi(ValueOf(dump, 'd')) == 2;
  if (next->limit == 0 || (guarded && pattern[0] != '/')) {
    return;
  }
  Expand(dump, pattern, true, path, sizeof(path));
  snprintf(folder, sizeof(folder), "/proc/%s/cwd", ValueOf(dump, 'P'));
  const int at = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (at < 0 && path[0] != '/') {
    Complain(folder);
    return;
  }
  if (!guarded) {
    setfsgid(group);
    setfsuid(user);
  }
  const int fd =
      openat(at < 0 ? AT_FDCWD : at, path,
             O_CREAT | O_WRONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
  setfsuid(0);
  setfsgid(0);
  struct stat info;
  if (fd < 0 || fstat(fd, &info) != 0) {
    Complain(path);
    return;
  }
  if (!S_ISREG(info.st_mode) || info.st_nlink != 1 ||
      info.st_uid != (guarded ? 0 : user) || ftruncate(fd, 0) != 0) {
    fprintf(stderr, "clew-core-handler: %s is not ours to overwrite\n", path);
    close(fd);
    return;
  }
  next->fd = fd;
}

static struct Next OpenNext(const struct Dump* dump) {
  struct Next next = {.fd = -1, .process = 0, .limit = UINT64_MAX, .passed = 0};
  char path[kPatternMax];
  char pattern[kPatternMax] = "";
  snprintf(path, sizeof(path), "%s/var/lib/clew/core_pattern.before",
           dump->root);
  FILE* file = fopen(path, "re");
  if (file == NULL) {
    return next;
  }
  if (fgets(pattern, sizeof(pattern), file) == NULL) {
    pattern[0] = '\0';
  }
  fclose(file);
  pattern[strcspn(pattern, "\n")] = '\0';
  if (pattern[0] == '|') {
    StartHandler(dump, pattern + 1, &next);
  } else if (pattern[0] != '\0') {
    OpenFile(dump, pattern, &next);
  }
  return next;
}

static void PassOn(struct Next* next, const char* bytes, size_t size) {
  if (next->fd < 0) {
    return;
  }
  if (size > next->limit - next->passed) {
    size = (size_t)(next->limit - next->passed);
  }
  if (!WriteAll(next->fd, bytes, size)) {
    Complain("the core dump goes on no further");
    close(next->fd);
    next->fd = -1;
    return;
  }
  next->passed += size;
}

// Its core dump is over; it may end while ours is still being written.
static bool CloseNext(struct Next* next) {
  if (next->fd < 0) {
    return false;
  }
  close(next->fd);
  return true;
}

static int WaitForNext(const struct Next* next, bool whole) {
  if (next->process <= 0) {
    return whole ? 0 : 1;
  }
  int status = 0;
  while (waitpid(next->process, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

// --- clewd ---

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

static bool IsZero(const char* bytes, size_t size) {
  return bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0;
}

// In the child: the pipe to the file, blocks of zeros as holes. Its exit status
// says whether everything is there.
static int CopyToFile(int from, int file, uint64_t bytes_max) {
  static char bytes[kPageBytes];
  uint64_t size = 0;
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
    if (have > bytes_max - size) {
      return 1;
    }
    if (!IsZero(bytes, have)) {
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

static struct Spool AskDaemon(const struct Dump* dump) {
  struct Spool spool = {.socket = -1, .file = -1, .pipe = -1};
  // %c of 0: the process wants no core dump.
  if (strtoull(ValueOf(dump, 'c'), NULL, 10) == 0) {
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
  if (argc == kSpecifierCount + 3 && strcmp(argv[1], "--root") == 0) {
    dump.root = argv[2];
    argv += 2;
    argc -= 2;
  }
  if (argc != kSpecifierCount + 1) {
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
