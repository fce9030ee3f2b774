#ifndef CLEW_RECORDER_NATIVE_PASSED_SIGNALS_H_
#define CLEW_RECORDER_NATIVE_PASSED_SIGNALS_H_

#include <signal.h>

#include <deque>
#include <map>

#include "common/result.h"
#include "recorder/native/native_state.h"

namespace clew::recorder {

// Signals that are the first thread's to take, and that another one is about to
// receive. What is sent to a process the kernel gives to its first thread, if
// that does not block it; but to another one if the first is stopped by
// ptrace(2), as it is here whenever it has no turn. Source: kernel/signal.c,
// complete_signal and wants_signal.

// Whether `signal`, which `thread` is about to receive, is one. Of timers of
// timer_create(2) and of what sigqueue(3) sends it is not known whom they mean;
// they stay where they are.
bool IsForFirst(const NativeState& state, const NativeThread& thread,
                int signal);

class PassedSignals {
 public:
  // `state` outlives this.
  explicit PassedSignals(NativeState& state) : state_(state) {}

  // Sends it to the first thread. REQUIRES: IsForFirst; and that `thread` is
  // let go on without it.
  [[nodiscard]] Status Pass(const NativeThread& thread, int signal);
  // `thread` is about to receive `signal`: if it was passed on, it is as it was
  // sent first.
  [[nodiscard]] Status Restore(const NativeThread& thread, int signal);

 private:
  NativeState& state_;
  std::map<int, std::deque<siginfo_t>> passed_;  // not received yet
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_NATIVE_PASSED_SIGNALS_H_
