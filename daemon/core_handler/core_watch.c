#define _GNU_SOURCE
#include "daemon/core_handler/core_watch.h"

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kLookMs = 500, kEndMs = 1000 };

// False: the child stands still.
static bool EndsByItself(struct pollfd* child, const _Atomic uint64_t* progress,
                         int stall_ms) {
  uint64_t seen = atomic_load(progress);
  for (int still_ms = 0; still_ms < stall_ms; still_ms += kLookMs) {
    if (poll(child, 1, kLookMs) > 0) {
      return true;
    }
    const uint64_t now = atomic_load(progress);
    still_ms = now == seen ? still_ms : 0;
    seen = now;
  }
  return false;
}

enum DumpEnd RunWatched(enum DumpEnd (*work)(void*), void* context,
                        const _Atomic uint64_t* progress, int stall_ms) {
  const pid_t process = fork();
  if (process == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    _exit((int)work(context));
  }
  struct pollfd child = {.fd = process < 0 ? -1 : pidfd_open(process, 0),
                         .events = POLLIN};
  if (process > 0 &&
      (child.fd < 0 || !EndsByItself(&child, progress, stall_ms))) {
    kill(process, SIGKILL);
    poll(&child, 1, kEndMs);
  }
  if (child.fd >= 0) {
    close(child.fd);
  }
  int status = 0;
  return process > 0 && waitpid(process, &status, WNOHANG) == process &&
                 WIFEXITED(status)
             ? (enum DumpEnd)WEXITSTATUS(status)
             : kDumpUnreadable;
}
