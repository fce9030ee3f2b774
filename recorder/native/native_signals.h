#ifndef CLEW_RECORDER_NATIVE_NATIVE_SIGNALS_H_
#define CLEW_RECORDER_NATIVE_NATIVE_SIGNALS_H_

#include <ucontext.h>

#include <cstdint>

#include "common/result.h"
#include "recorder/native/native_calls.h"
#include "recorder/native/native_state.h"
#include "recorder/native/passed_signals.h"

namespace clew::recorder {

// Signals on their way to a program that is stepped.
class NativeSignals {
 public:
  // References outlive this.
  NativeSignals(NativeState& state, NativeCalls& calls)
      : state_(state), calls_(calls), passed_(state) {}

  // Delivers thread.signal: the thread is at the first instruction of its
  // handler then, or goes on as before where the signal is ignored, or another
  // thread's. kEnded: it ends the program.
  [[nodiscard]] Result<After> Deliver(NativeThread& thread);

 private:
  [[nodiscard]] Result<After> GoOn(NativeThread& thread);
  [[nodiscard]] Status EnterHandler(NativeThread& thread, int signal);
  [[nodiscard]] Status ClearTrapFlag(uint64_t frame, const ucontext_t& context);
  [[nodiscard]] Result<After> End(NativeThread& thread, int signal);

  NativeState& state_;
  NativeCalls& calls_;
  PassedSignals passed_;
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_NATIVE_NATIVE_SIGNALS_H_
