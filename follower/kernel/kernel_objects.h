#ifndef CLEW_FOLLOWER_KERNEL_KERNEL_OBJECTS_H_
#define CLEW_FOLLOWER_KERNEL_KERNEL_OBJECTS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "common/inputs.h"
#include "common/linux/syscall_reads.h"
#include "common/sent_signals.h"
#include "common/units.h"
#include "follower/kernel/channels.h"
#include "follower/kernel/futex.h"
#include "follower/kernel/undoable.h"
#include "machine/memory.h"

namespace clew::follower {

// What a thread in a system call needs before the call may return.
struct Wait {
  // May return only when another thread has acted.
  bool needs_wake = false;
  // The futex word on which it sleeps; for a channel, an address at which there
  // is no memory; 0 for neither.
  uint64_t addr = 0;
  Channels::Taking taking = {};  // from a channel
  MemoryRange room = {};         // where nothing may be mapped when it returns
  // A process that has the caller's memory, and is to have ended, or to run
  // another program.
  std::optional<size_t> child = {};
  // A futex wait that found its value, and was recorded to be refused: the word
  // is to have had another one meanwhile. A signal that another thread took can
  // wake the sleeper, for which the kernel begins the wait anew.
  struct Refusal {
    uint64_t addr = 0;
    uint32_t value = 0;
    bool was_seen = false;
  };
  std::optional<Refusal> refusal = {};
  // A wait for a lock with priority inheritance: its word is to name the thread
  // as the owner. Who began to wait first has the lowest number.
  struct Owning {
    uint64_t addr = 0;
    uint32_t owner = 0;
    uint64_t number = 0;
  };
  std::optional<Owning> owning = {};

  // Whether what other threads do to `word` decides when the call may return.
  bool HangsOnWord() const { return needs_wake || refusal || owning; }
  uint64_t word() const {
    return refusal ? refusal->addr : owning ? owning->addr : addr;
  }
};

// What the kernel keeps for a process and its threads wait for: sleepers on
// futex words, what lies in channels, signals that were sent. A call that was
// recorded to take something may return, and a handler be entered, only after
// another thread has put it there.
//
// A copy has no marks. Not thread-safe.
class KernelObjects {
 public:
  // `process` is the id of the process, which is that of its first thread.
  explicit KernelObjects(Tid process) : signals_(SentSignals(process)) {}

  // Notes that a call is entered, with `memory` holding its arguments: what it
  // puts into channels and sends counts from here on. Returns the wait for a
  // channel, or an empty one; for futex(2) see below.
  Wait Enter(const SyscallInput& call, const machine::Memory& memory);
  // Notes that a call has returned, and the descriptors that it made.
  void Leave(const SyscallInput& call);

  // Notes that a thread falls asleep on a futex word, and returns its wait.
  // `needs_wake`: it was recorded to return 0, or never to return.
  Wait Sleep(uint64_t addr, bool needs_wake, FutexTable::Match match);
  // To note wakes and requeues.
  FutexTable& ChangeFutexes() { return futexes_.Change(); }
  // Notes the kernel's wake of one sleeper, if any, when a thread exits.
  void WakeOnExit(uint64_t addr);

  // Returns whether the call with this wait may return now.
  bool MayReturn(const Wait& wait) const;
  // Notes that it returns, and takes what it waited for. REQUIRES:
  // MayReturn(wait) is true.
  void EndWait(const Wait& wait);

  // Returns whether `thread` may enter the handlers of `signals` now, one after
  // the other.
  bool MayHandle(Tid thread,
                 std::span<const SentSignals::Signal> signals) const;
  // Notes that `thread` enters the handler. REQUIRES: MayHandle is true.
  void Handle(Tid thread, const SentSignals::Signal& signal);

  // These undo in LIFO order.
  using Mark = size_t;
  Mark SetMark();
  void RollBack(Mark mark);
  void DropMarks();

  // Equal objects have equal digests. Signals are not part of it: how many were
  // sent and handled follows from how far each thread is.
  uint64_t Digest() const;

 private:
  Undoable<FutexTable> futexes_;
  Undoable<Channels> channels_;
  Undoable<SentSignals> signals_;
};

}  // namespace clew::follower

#endif  // CLEW_FOLLOWER_KERNEL_KERNEL_OBJECTS_H_
