#ifndef CLEW_RECORDER_TRACER_RUNTIME_LOCK_H_
#define CLEW_RECORDER_TRACER_RUNTIME_LOCK_H_

#include <linux/futex.h>
#include <sys/syscall.h>

#include <atomic>
#include <cstdint>

#include "recorder/tracer/runtime/call.h"

namespace clew::tracer {

// One thread of a process at a time. All zero, nobody has it.
// Source: U. Drepper, "Futexes Are Tricky", section 6.
class Lock {
 public:
  void Take() {
    uint32_t was = kFree;
    if (state_.compare_exchange_strong(was, kTaken,
                                       std::memory_order_acquire)) {
      return;
    }
    while (state_.exchange(kWaitedFor, std::memory_order_acquire) != kFree) {
      Call(SYS_futex, AddrOf(&state_), FUTEX_WAIT_PRIVATE, kWaitedFor);
    }
  }
  void Release() {
    if (state_.exchange(kFree, std::memory_order_release) == kWaitedFor) {
      Call(SYS_futex, AddrOf(&state_), FUTEX_WAKE_PRIVATE, 1);
    }
  }

 private:
  static constexpr uint32_t kFree = 0;
  static constexpr uint32_t kTaken = 1;
  static constexpr uint32_t kWaitedFor = 2;
  std::atomic<uint32_t> state_;
};

class Locked {
 public:
  explicit Locked(Lock& lock) : lock_(lock) { lock_.Take(); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
  ~Locked() { lock_.Release(); }

 private:
  Lock& lock_;
};

}  // namespace clew::tracer

#endif  // CLEW_RECORDER_TRACER_RUNTIME_LOCK_H_
