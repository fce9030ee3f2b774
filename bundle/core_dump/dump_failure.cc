#include "bundle/core_dump/dump_failure.h"

#include <signal.h>

#include <algorithm>
#include <array>

namespace clew::bundle {
namespace {

// signal(7), action "Core".
constexpr std::array kCoreSignals = {SIGQUIT, SIGILL, SIGTRAP, SIGABRT,
                                     SIGBUS,  SIGFPE, SIGSEGV, SIGXCPU,
                                     SIGXFSZ, SIGSYS};

}  // namespace

int32_t SignalOf(const CoreDump& core) {
  const int32_t signal = core.threads().front().signal;
  const auto& info = core.signal();
  return signal != 0 || !info ? signal : info->signal;
}

Failure FailureOf(const CoreDump& core) {
  const DumpThread& thread = core.threads().front();
  const int32_t signal = SignalOf(core);
  Failure failure;
  if (std::ranges::find(kCoreSignals, signal) == kCoreSignals.end()) {
    return failure;
  }
  failure.kind = FailureKind::kSignal;
  failure.signal = signal;
  failure.thread = thread.thread;
  failure.ip = thread.rip;
  // Only of a fault that the kernel raised does si_addr tell an access.
  const auto& info = core.signal();
  if (info && info->signal == signal && info->code > 0 &&
      (signal == SIGSEGV || signal == SIGBUS)) {
    failure.addr = info->addr;
  }
  return failure;
}

}  // namespace clew::bundle
