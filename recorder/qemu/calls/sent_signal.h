#ifndef CLEW_RECORDER_QEMU_CALLS_SENT_SIGNAL_H_
#define CLEW_RECORDER_QEMU_CALLS_SENT_SIGNAL_H_

#include <asm/unistd_64.h>

#include <cstdint>
#include <optional>

#include "recorder/qemu/calls/syscall_effects.h"

namespace clew::recorder {

struct SentSignal {
  uint64_t tid = 0;
  uint64_t signal = 0;
};

// The signal that `call` sends, and whom the kernel gives it: one sent to a
// process goes to its first thread, unless that blocks it.
inline std::optional<SentSignal> SignalOf(const SyscallCall& call) {
  switch (call.number) {
    case __NR_kill:
    case __NR_tkill:
      return SentSignal{.tid = call.args[0], .signal = call.args[1]};
    case __NR_tgkill:
      return SentSignal{.tid = call.args[1], .signal = call.args[2]};
    default:
      return std::nullopt;
  }
}

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_CALLS_SENT_SIGNAL_H_
