#ifndef CLEW_RECORDER_QEMU_CALLS_FUTEX_MODEL_H_
#define CLEW_RECORDER_QEMU_CALLS_FUTEX_MODEL_H_

#include <cstdint>
#include <deque>
#include <vector>

#include "recorder/qemu/calls/syscall_effects.h"

namespace clew::recorder {

// Who sleeps on which futex, in the order of falling asleep, which is the order
// in which the kernel wakes. Fed with every futex call and its result, it tells
// who was woken without asking the kernel. Not thread-safe.
//
// Invariant: sleepers_ is in the order of falling asleep, for each address. A
// thread that was requeued fell asleep on its new address when it was moved.
//
// A woken thread may return before the call that woke it has been recorded.
// Then it is *marked* and stays where it is: the wake takes the marked ones
// first, as it is their call, and fills up with the others in order.
//
// Worked example. T1, T2 and T3 sleep on one address, in this order.
//
//     sleepers_        T1   T2   T3
//     MarkWoken(T2)    T1   T2*  T3      T2 is back, but by whose call?
//     Wake(2)          T2 is one of the two, and the first of the others is T1:
//                      returns T1, T2
//     sleepers_        T3
class FutexModel {
 public:
  using Slot = uint32_t;

  void Wait(Slot thread, uint64_t addr, uint32_t bitset);
  // The kernel woke `thread`, and it is not known yet by whose call.
  void MarkWoken(Slot thread);
  // A call woke `count` sleepers on `addr` that share a bit with `bitset`: the
  // marked ones, then the first. They sleep no longer. In order of falling
  // asleep.
  std::vector<Slot> Wake(uint64_t addr, uint64_t count, uint32_t bitset);
  // Like Wake, for everything that `call`, which is not a wait, did: the kernel
  // returned `result`, the number of threads that it woke and moved.
  std::vector<Slot> WakeBy(const FutexCall& call, uint64_t result);
  // Moves up to `count` sleepers from one address to the end of the other's.
  void Requeue(uint64_t from, uint64_t to, uint64_t count);
  // `thread` woke for a reason of its own (time limit, signal), if it slept.
  void Remove(Slot thread);

 private:
  struct Sleeper {
    Slot thread;
    uint64_t addr;
    uint32_t bitset;
    bool woken = false;
  };
  std::deque<Sleeper> sleepers_;
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_CALLS_FUTEX_MODEL_H_
