// clew-core-handler: what the kernel starts for each core dump (core(5)), with
// the arguments of daemon/core_pattern.cc. Gives the core dump on standard
// input to whoever handled core dumps before, whole and unchanged, and to a
// file that clewd gives, if it gives one within two seconds. What the former
// gets never depends on the latter.
//
// A program from before gets the pipe. Files are made from the memory of the
// dying process (core_memory.h), and from the pipe where that cannot be.
//
// Exit status: that of the handler from before; without one, 0, or 1 if the
// core file could not be written.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/core_handler/core_memory.h"
#include "daemon/core_handler/core_next.h"
#include "daemon/core_handler/core_spool.h"
#include "daemon/core_handler/core_watch.h"

enum {
  kBlockBytes = 65536,
  kPipeBytes = 1 << 20,
  kHeldBackBytes = 2 * kPipeBytes,
};

// Of a child that reads the memory, in memory shared with it.
struct Work {
  const struct Dump* dump;
  const struct DumpHead* head;
  struct Next next;
  _Atomic uint64_t progress;
};

static bool PutInNext(void* to, const char* bytes, size_t size) {
  struct Work* const work = to;
  PassOn(&work->next, bytes, size);
  atomic_fetch_add(&work->progress, 1);
  return work->next.fd >= 0 && work->next.written < work->next.limit;
}

static bool SkipInNext(void* to, uint64_t size) {
  struct Work* const work = to;
  PassHole(&work->next, size);
  atomic_fetch_add(&work->progress, 1);
  return true;
}

static enum DumpEnd CopyToNext(void* context) {
  struct Work* const work = context;
  const struct DumpSink sink = {
      .put = PutInNext, .skip = SkipInNext, .to = work};
  struct DumpMemory memory;
  return OpenDumpMemory(work->dump, STDIN_FILENO, work->head, &memory)
             ? CopyDump(work->head, &memory, sink)
             : kDumpUnreadable;
}

static enum DumpEnd OpenOnly(void* context) {
  const struct Work* const work = context;
  struct DumpMemory memory;
  return OpenDumpMemory(work->dump, STDIN_FILENO, work->head, &memory)
             ? kDumpWhole
             : kDumpUnreadable;
}

// NULL: there is no memory for it.
static struct Work* MakeWork(const struct Dump* dump,
                             const struct DumpHead* head,
                             const struct Next* next) {
  struct Work* const work = mmap(NULL, sizeof(*work), PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (work == MAP_FAILED) {
    return NULL;
  }
  *work = (struct Work){.dump = dump, .head = head, .next = *next};
  return work;
}

static enum DumpEnd PassMemoryOn(const struct Dump* dump,
                                 const struct DumpHead* head,
                                 struct Next* next) {
  struct Work* const work = MakeWork(dump, head, next);
  if (work == NULL) {
    return kDumpUnreadable;
  }
  const enum DumpEnd end =
      RunWatched(CopyToNext, work, &work->progress, dump->stall_ms);
  if (end != kDumpUnreadable) {
    *next = work->next;
  }
  munmap(work, sizeof(*work));
  return end;
}

// Returns whether files were made as far as they could be; otherwise they are
// empty. REQUIRES: there is no program from before.
static bool FilesFromMemory(const struct Dump* dump,
                            const struct DumpHead* head, struct Next* next,
                            struct CoreSpool* spool) {
  StartCopyingMemory(spool, dump, head);
  const enum DumpEnd passed =
      next->fd < 0 ? kDumpWhole : PassMemoryOn(dump, head, next);
  const enum DumpEnd copied = WaitForCopy(spool);
  if (passed != kDumpUnreadable && copied != kDumpUnreadable) {
    close(STDIN_FILENO);  // the process may go
    return true;
  }
  Rewind(next);
  BeginAgain(spool);
  return false;
}

// What was read of the dump, and then the pipe, to everybody. Returns the
// length of the dump.
static uint64_t FromPipe(const struct DumpHead* head, struct Next* next,
                         struct CoreSpool* spool) {
  static char bytes[kBlockBytes];
  const char* part = head->bytes;
  ssize_t size = (ssize_t)head->size;
  uint64_t total = 0;
  while (size != 0) {
    if (size > 0) {
      PassOn(next, part, (size_t)size);
      Keep(spool, part, (size_t)size);
      total += (uint64_t)size;
    }
    part = bytes;
    size = read(STDIN_FILENO, bytes, sizeof(bytes));
    if (size < 0 && errno != EINTR) {
      break;
    }
  }
  // Less than the head says: somebody killed the process meanwhile.
  spool->ended_early = total < head->dump_bytes;
  return total;
}

// The pipe to the program from before, and the memory to the spool. The process
// may not go before its memory was copied: until then more is left of the dump
// than the pipe holds.
static void PassOnAndCopy(const struct Dump* dump, const struct DumpHead* head,
                          struct Next* next, struct CoreSpool* spool) {
  StartCopyingMemory(spool, dump, head);
  (void)fcntl(STDIN_FILENO, F_SETPIPE_SZ, kPipeBytes);
  PassOn(next, head->bytes, head->size);
  uint64_t total = head->size;
  bool copied = false;
  for (ssize_t size = 1; size > 0; total += (uint64_t)size) {
    if (!copied && total + kHeldBackBytes >= head->dump_bytes) {
      (void)WaitForCopy(spool);
      copied = true;
    }
    size = MoveOn(next, STDIN_FILENO);
  }
  if (!copied) {
    (void)WaitForCopy(spool);
  }
}

static bool MemoryIsThere(const struct Dump* dump, const struct DumpHead* head,
                          const struct Next* next) {
  struct Work* const work = MakeWork(dump, head, next);
  if (work == NULL) {
    return false;
  }
  const enum DumpEnd end =
      RunWatched(OpenOnly, work, &work->progress, dump->stall_ms);
  munmap(work, sizeof(*work));
  return end == kDumpWhole;
}

// Returns the length of the dump.
static uint64_t Take(const struct Dump* dump, struct Next* next,
                     struct CoreSpool* spool) {
  struct DumpHead head;
  const bool copying =
      ReadDumpHead(STDIN_FILENO, &head) && MemoryIsThere(dump, &head, next);
  uint64_t total = head.dump_bytes;
  if (copying && next->process > 0) {
    PassOnAndCopy(dump, &head, next, spool);
  } else if (!copying || !FilesFromMemory(dump, &head, next, spool)) {
    StartKeeping(spool);
    total = FromPipe(&head, next, spool);
  }
  free(head.bytes);
  return total;
}

// Options of tests, before what the kernel gives, which begins with a number.
static void TakeOptions(int* argc, char*** argv, struct Dump* dump) {
  for (; *argc > kCoreSpecifierCount + 2; *argc -= 2, *argv += 2) {
    const char* const name = (*argv)[1];
    char* const value = (*argv)[2];
    if (strcmp(name, "--root") == 0) {
      dump->root = value;
    } else if (strcmp(name, "--patience") == 0) {
      dump->answer_ms = dump->stall_ms = 1000 * atoi(value);
    } else {
      return;
    }
  }
}

int main(int argc, char** argv) {
  struct Dump dump = {.root = "", .answer_ms = kAnswerMs, .stall_ms = kStallMs};
  TakeOptions(&argc, &argv, &dump);
  if (argc != kCoreSpecifierCount + 1) {
    fprintf(stderr,
            "usage: clew-core-handler [--root DIR] [--patience S] %%P %%p %%I "
            "%%i %%u %%g %%d %%s %%t %%c %%h %%e < core\n"
            "The kernel calls it; see clew daemon install-core-pattern. The "
            "options are for tests: where clew's files are, and how many "
            "seconds clewd and children have on a slow machine.\n");
    return 2;
  }
  memcpy(dump.value, argv + 1, sizeof(dump.value));
  signal(SIGPIPE, SIG_IGN);
  // clewd first: it reads /proc of the process, and stops the trace.
  struct CoreSpool spool = AskDaemon(&dump);
  struct Next next = OpenNext(&dump);
  const bool wanted = next.fd >= 0 || spool.file >= 0;
  const uint64_t total = wanted ? Take(&dump, &next, &spool) : 0;
  const bool whole = CloseNext(&next);
  FinishSpool(&spool, total);
  return WaitForNext(&next, whole);
}
