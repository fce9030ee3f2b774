#include "recorder/tracer/runtime/program_memory.h"

#include <signal.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>

#include "common/x86/page.h"
#include "recorder/tracer/runtime/call.h"

namespace clew::tracer {
namespace {

// What the kernel reads and writes of a mask of signals.
constexpr uint64_t kProbeBytes = 8;

// Whether `probe` can use 8 bytes in each page, and the last ones.
template <class Probe>
bool CanUse(uint64_t addr, uint64_t bytes, Probe probe) {
  if (bytes < kProbeBytes) {
    return probe(addr);
  }
  const uint64_t last = addr + bytes - kProbeBytes;
  for (uint64_t at = addr; at < last;
       at = (at & ~(kPageBytes - 1)) + kPageBytes) {
    if (!probe(at)) {
      return false;
    }
  }
  return probe(last);
}

constexpr uint64_t kFault = static_cast<uint64_t>(-EFAULT);

}  // namespace

bool CanRead(uint64_t addr, uint64_t bytes) {
  return CanUse(addr, bytes, [](uint64_t at) {
    // It reads the mask before it looks at what to do with it.
    constexpr uint64_t kNothing = 99;
    return Call(SYS_rt_sigprocmask, kNothing, at, 0, kProbeBytes) != kFault;
  });
}

bool CanWrite(uint64_t addr, uint64_t bytes) {
  return CanUse(addr, bytes, [](uint64_t at) {
    return Call(SYS_rt_sigprocmask, SIG_BLOCK, 0, at, kProbeBytes) != kFault;
  });
}

}  // namespace clew::tracer
