#include "recorder/native/passed_signals.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "recorder/native/tracee/signal_disposition.h"

namespace clew::recorder {
namespace {

bool IsOfTerminalOrTimer(int signal) {
  return signal == SIGALRM || signal == SIGHUP || signal == SIGINT ||
         signal == SIGQUIT || signal == SIGTSTP;
}

// As far as that can be told.
bool IsSentToProcess(const siginfo_t& info) {
  switch (info.si_code) {
    case SI_USER:  // by kill(2); who writes to a broken pipe gets its own
      return info.si_signo != SIGPIPE;
    case SI_KERNEL:
      return IsOfTerminalOrTimer(info.si_signo);
    default:
      return info.si_signo == SIGCHLD && info.si_code > 0;
  }
}

}  // namespace

bool IsForFirst(const NativeState& state, const NativeThread& thread,
                int signal) {
  const Tid first = state.process.first_thread();
  const bool has_first =
      thread.tid != first && thread.other_process == nullptr &&
      std::ranges::any_of(state.threads, [first](const auto& other) {
        return other->tid == first &&
               other->state != NativeThread::State::kGone;
      });
  if (!has_first) {
    return false;
  }
  const auto info = state.process.SignalInfo(thread.tid);
  return info && info->si_signo == signal && IsSentToProcess(*info) &&
         (SignalsBlockedBy(first) >> (signal - 1) & 1) == 0;
}

Status PassedSignals::Pass(const NativeThread& thread, int signal) {
  CLEW_ASSIGN_OR_RETURN(info, state_.process.SignalInfo(thread.tid));
  if (syscall(SYS_tgkill, state_.process.process(),
              state_.process.first_thread().as_int(), signal) != 0) {
    return SystemError(errno, "cannot pass a signal on");
  }
  std::deque<siginfo_t>& passed = passed_[signal];
  if (passed.empty() || signal >= SIGRTMIN) {  // others are pending once
    passed.push_back(info);
  }
  return {};
}

Status PassedSignals::Restore(const NativeThread& thread, int signal) {
  const auto passed = passed_.find(signal);
  if (passed == passed_.end() || thread.tid != state_.process.first_thread()) {
    return {};
  }
  CLEW_ASSIGN_OR_RETURN(info, state_.process.SignalInfo(thread.tid));
  if (info.si_code != SI_TKILL || info.si_pid == state_.process.process()) {
    return {};  // another one
  }
  const siginfo_t sent = passed->second.front();
  passed->second.pop_front();
  if (passed->second.empty()) {
    passed_.erase(passed);
  }
  return state_.process.SetSignalInfo(thread.tid, sent);
}

}  // namespace clew::recorder
