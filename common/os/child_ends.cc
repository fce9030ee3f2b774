#include "common/os/child_ends.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace clew {
namespace {

std::atomic<uint32_t> g_count = 0;
std::atomic<int32_t> g_waits = 0;  // the thread that is to hear; 0: none
std::atomic<int> g_made = 0;
struct sigaction g_before;

int32_t OwnThread() { return static_cast<int32_t>(syscall(SYS_gettid)); }

// The kernel chooses any thread of the process.
void Hear(int signal) {
  const int error = errno;
  const int32_t waits = g_waits;
  if (waits == 0 || waits == OwnThread()) {
    ++g_count;
  } else {
    syscall(SYS_tgkill, getpid(), waits, signal);
  }
  errno = error;
}

}  // namespace

ChildEnds::ChildEnds() {
  if (g_made++ > 0) {
    return;
  }
  g_waits = OwnThread();
  sigaction(SIGCHLD, nullptr, &g_before);
  if (g_before.sa_handler == SIG_DFL) {
    struct sigaction hear = {};
    hear.sa_handler = Hear;
    hear.sa_flags = SA_NOCLDSTOP;
    sigaction(SIGCHLD, &hear, nullptr);
  }
}

ChildEnds::~ChildEnds() {
  if (--g_made == 0) {
    g_waits = 0;
    sigaction(SIGCHLD, &g_before, nullptr);
  }
}

uint32_t ChildEnds::count() { return g_count; }

}  // namespace clew
