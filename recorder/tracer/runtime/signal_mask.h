#ifndef CLEW_RECORDER_TRACER_RUNTIME_SIGNAL_MASK_H_
#define CLEW_RECORDER_TRACER_RUNTIME_SIGNAL_MASK_H_

#include <signal.h>
#include <sys/syscall.h>

#include <cstdint>

#include "recorder/tracer/runtime/call.h"
#include "recorder/tracer/shared_layout.h"

// The kernel's mask of the calling thread's signals.

namespace clew::tracer {

inline void SetMask(uint64_t mask) {
  Call(SYS_rt_sigprocmask, SIG_SETMASK, AddrOf(&mask), 0, sizeof mask);
}

// None comes to the calling thread while it lives.
class SignalsBlocked {
 public:
  explicit SignalsBlocked(ThreadState& thread) : signals_(thread.signals) {
    Call(SYS_rt_sigprocmask, SIG_BLOCK, 0, AddrOf(&signals_.blocked_mask),
         sizeof mask_);
    signals_.is_blocking = 1;
    const uint64_t all = ~0ull;
    Call(SYS_rt_sigprocmask, SIG_SETMASK, AddrOf(&all), AddrOf(&mask_),
         sizeof mask_);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  ~SignalsBlocked() {
    SetMask(mask_);
    signals_.is_blocking = 0;
  }

  // As it was before.
  uint64_t mask() const { return mask_; }

 private:
  SignalState& signals_;
  uint64_t mask_ = 0;
};

}  // namespace clew::tracer

#endif  // CLEW_RECORDER_TRACER_RUNTIME_SIGNAL_MASK_H_
