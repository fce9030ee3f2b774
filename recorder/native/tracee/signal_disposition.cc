#include "recorder/native/tracee/signal_disposition.h"

#include <asm/unistd_64.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <bit>
#include <string>

#include "common/os/process_state.h"

namespace clew::recorder {
namespace {

bool IsIgnoredByDefault(int signal) {
  return signal == SIGCHLD || signal == SIGURG || signal == SIGWINCH ||
         signal == SIGCONT;
}

bool Stops(int signal) {
  return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN ||
         signal == SIGTTOU;
}

std::string StatusOf(Tid thread) {
  return TracedProcess::ThreadText(thread, "status");
}

Disposition DispositionIn(const std::string& status, int signal) {
  const uint64_t bit = uint64_t{1} << (signal - 1);
  if ((StatusMask(status, "SigCgt") & bit) != 0) {
    return Disposition::kHandled;
  }
  if ((StatusMask(status, "SigIgn") & bit) != 0 || IsIgnoredByDefault(signal)) {
    return Disposition::kIgnored;
  }
  return Stops(signal) ? Disposition::kStops : Disposition::kEnds;
}

}  // namespace

Disposition DispositionOf(Tid thread, int signal) {
  return DispositionIn(StatusOf(thread), signal);
}

uint64_t SignalsBlockedBy(Tid thread) {
  return StatusMask(StatusOf(thread), "SigBlk");
}

bool IsDropped(const TracedProcess& process, Tid thread, int signal) {
  return IsDropped(thread, signal, SignalsBlockedBy(process.first_thread()));
}

bool IsDropped(Tid thread, int signal, uint64_t mask_of_first) {
  const Disposition disposition = DispositionOf(thread, signal);
  return (disposition == Disposition::kIgnored ||
          disposition == Disposition::kStops) &&
         (mask_of_first >> (signal - 1) & 1) == 0;
}

bool KillsItself(const SyscallCall& call, int32_t process) {
  const auto target = static_cast<pid_t>(call.args[0]);
  switch (call.number) {
    case __NR_kill:
      return call.args[1] == SIGKILL &&
             (target == process || target == 0 || target == -getpgid(process));
    case __NR_tkill:
      return call.args[1] == SIGKILL &&
             access(fmt::format("/proc/{}/task/{}", process, target).c_str(),
                    F_OK) == 0;
    case __NR_tgkill:
      return call.args[2] == SIGKILL && target == process;
    case __NR_rt_sigqueueinfo:
      return call.args[1] == SIGKILL && target == process;
    default:
      return false;
  }
}

bool IsSignalDue(const TracedProcess& process, Tid thread) {
  const std::string status = StatusOf(thread);
  uint64_t pending =
      (StatusMask(status, "SigPnd") | StatusMask(status, "ShdPnd")) &
      ~StatusMask(status, "SigBlk");
  for (; pending != 0; pending &= pending - 1) {
    if (!IsDropped(process, thread, std::countr_zero(pending) + 1)) {
      return true;
    }
  }
  return false;
}

}  // namespace clew::recorder
