#define _GNU_SOURCE
#include "daemon/core_handler/core_next.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
  kPatternMax = 4096,
  kArgumentsMax = 64,
  kHoleBytes = 4096,
  kMoveBytes = 1 << 20,  // what the pipe to a handler holds, too
};

const char* ValueOf(const struct Dump* dump, char specifier) {
  const char* at = strchr(CORE_SPECIFIERS, specifier);
  return at == NULL || specifier == '\0' ? NULL
                                         : dump->value[at - CORE_SPECIFIERS];
}

void Complain(const char* what) {
  fprintf(stderr, "clew-core-handler: %s: %s\n", what, strerror(errno));
}

bool WriteAll(int fd, const char* bytes, size_t size) {
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

bool IsZero(const char* bytes, size_t size) {
  return bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0;
}

// Appends a value as fs/coredump.c's cn_esc_printf does: no value is empty, "."
// or "..", or has a '/', so none leads into another folder.
static void AppendEscaped(const char* value, char* text, size_t size) {
  const size_t used = strlen(text);
  snprintf(text + used, size - used, "%s", value);
  char* const added = text + used;
  if (strcmp(added, ".") == 0 || strcmp(added, "..") == 0) {
    added[0] = '!';
  } else if (added[0] == '\0') {
    snprintf(added, size - used, "!");
  }
  for (char* c = added; *c != '\0'; ++c) {
    *c = *c == '/' ? '!' : *c;
  }
}

// %E: the path of the program.
static void AppendProgram(const struct Dump* dump, char* text, size_t size) {
  char link[64];
  char path[kPatternMax];
  snprintf(link, sizeof(link), "/proc/%s/exe", ValueOf(dump, 'P'));
  const ssize_t length = readlink(link, path, sizeof(path) - 1);
  path[length < 0 ? 0 : length] = '\0';
  AppendEscaped(length < 0 ? ValueOf(dump, 'e') : path, text, size);
}

// core(5): "Naming of core dump files".
static void Expand(const struct Dump* dump, const char* pattern, char* text,
                   size_t size) {
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
      AppendEscaped(value, text, size);
    }
  }
}

static void StartHandler(const struct Dump* dump, char* pattern,
                         struct Next* next) {
  static char texts[kArgumentsMax][kPatternMax];
  char* arguments[kArgumentsMax + 1] = {NULL};
  int count = 0;
  char* place = NULL;
  for (char* word = strtok_r(pattern, " \t", &place);
       word != NULL && count < kArgumentsMax;
       word = strtok_r(NULL, " \t", &place)) {
    Expand(dump, word, texts[count], sizeof(texts[count]));
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
  (void)fcntl(next->fd, F_SETPIPE_SZ, kMoveBytes);
}

// A folder of the process, by a link of /proc; -1 with a complaint.
static int OpenFolder(const struct Dump* dump, const char* link) {
  char path[64];
  snprintf(path, sizeof(path), "/proc/%s/%s", ValueOf(dump, 'P'), link);
  const int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) {
    Complain(path);
  }
  return fd;
}

static bool IsRoot(int folder) {
  struct stat own;
  struct stat other;
  return stat("/", &own) == 0 && fstat(folder, &other) == 0 &&
         own.st_dev == other.st_dev && own.st_ino == other.st_ino;
}

// The calling process sees paths as one with that root and working directory.
static bool Enter(int root, int folder) {
  return fchdir(root) == 0 && (IsRoot(root) || chroot(".") == 0) &&
         fchdir(folder) == 0;
}

static int OpenAs(const struct Dump* dump, const char* path, bool guarded) {
  if (guarded) {
    (void)unlink(path);
    return open(path, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC,
                0600);
  }
  setfsgid((gid_t)strtoul(ValueOf(dump, 'g'), NULL, 10));
  setfsuid((uid_t)strtoul(ValueOf(dump, 'u'), NULL, 10));
  const int fd = open(
      path, O_CREAT | O_WRONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
  setfsuid(0);
  setfsgid(0);
  return fd;
}

// Whether the file is such as the kernel would dump into, and empties it.
static bool TakeFile(const struct Dump* dump, int fd, bool guarded) {
  const uid_t user = guarded ? 0 : (uid_t)strtoul(ValueOf(dump, 'u'), NULL, 10);
  struct stat info;
  return fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_nlink == 1 &&
         info.st_uid == user && (info.st_mode & 0677) == 0600 &&
         ftruncate(fd, 0) == 0;
}

// As the kernel does it (fs/coredump.c, do_coredump): in the process's root, as
// its user, relative to its working directory, no link, a file of that user
// with one name. %d of 2 (suid_dumpable): root alone may read it, and only at a
// fixed place of the host's root, where it is made anew.
static void OpenFile(const struct Dump* dump, const char* pattern,
                     struct Next* next) {
  char path[kPatternMax];
  next->limit = strtoull(ValueOf(dump, 'c'), NULL, 10);
  const bool guarded = atoi(ValueOf(dump, 'd')) == 2;
  if (next->limit == 0 || (guarded && pattern[0] != '/')) {
    return;
  }
  Expand(dump, pattern, path, sizeof(path));
  const int own_root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  const int root = guarded ? own_root : OpenFolder(dump, "root");
  const int folder = guarded ? own_root : OpenFolder(dump, "cwd");
  if (root < 0 || folder < 0) {
    return;
  }
  if (!Enter(root, folder)) {
    Complain("cannot see paths as the process does");
    return;
  }
  const int fd = OpenAs(dump, path, guarded);
  if (!Enter(own_root, own_root)) {
    Complain("cannot return to the root");
    _exit(1);
  }
  if (fd < 0) {
    Complain(path);
    return;
  }
  if (!TakeFile(dump, fd, guarded)) {
    fprintf(stderr, "clew-core-handler: %s is not ours to overwrite\n", path);
    close(fd);
    return;
  }
  next->fd = fd;
}

struct Next OpenNext(const struct Dump* dump) {
  struct Next next = {.fd = -1, .limit = UINT64_MAX};
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

static void GiveUp(struct Next* next) {
  Complain("the core dump goes on no further");
  close(next->fd);
  next->fd = -1;
}

// RLIMIT_CORE counts what is written, as in the kernel, where a hole is a seek.
static bool WritePart(struct Next* next, const char* bytes, size_t size) {
  if (!IsZero(bytes, size)) {
    const uint64_t room = next->limit - next->written;
    size = size < room ? size : (size_t)room;
    if (lseek(next->fd, (off_t)next->size, SEEK_SET) < 0 ||
        !WriteAll(next->fd, bytes, size)) {
      return false;
    }
    next->written += size;
  }
  next->size += size;
  return true;
}

void PassOn(struct Next* next, const char* bytes, size_t size) {
  if (next->fd >= 0 && next->process > 0) {
    if (!WriteAll(next->fd, bytes, size)) {
      GiveUp(next);
    }
    return;
  }
  while (next->fd >= 0 && size > 0 && next->written < next->limit) {
    const size_t to_hole = kHoleBytes - next->size % kHoleBytes;
    const size_t part = size < to_hole ? size : to_hole;
    if (!WritePart(next, bytes, part)) {
      GiveUp(next);
    }
    bytes += part;
    size -= part;
  }
}

ssize_t MoveOn(struct Next* next, int from) {
  ssize_t size = 0;
  do {
    size = next->fd < 0 ? 0 : splice(from, NULL, next->fd, NULL, kMoveBytes, 0);
  } while (size < 0 && errno == EINTR);
  if (size < 0) {
    GiveUp(next);
    return 0;
  }
  return size;
}

void PassHole(struct Next* next, uint64_t size) {
  if (next->written < next->limit) {
    next->size += size;
  }
}

void Rewind(struct Next* next) {
  next->size = 0;
  next->written = 0;
  if (next->fd >= 0 && ftruncate(next->fd, 0) != 0) {
    GiveUp(next);
  }
}

bool CloseNext(struct Next* next) {
  if (next->fd < 0) {
    return false;
  }
  const bool whole =
      next->process > 0 || ftruncate(next->fd, (off_t)next->size) == 0;
  close(next->fd);
  return whole;
}

int WaitForNext(const struct Next* next, bool whole) {
  if (next->process <= 0) {
    return whole ? 0 : 1;
  }
  int status = 0;
  while (waitpid(next->process, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
