#ifndef CLEW_FOLLOWER_KERNEL_FUTEX_H_
#define CLEW_FOLLOWER_KERNEL_FUTEX_H_

#include <cstdint>
#include <map>

namespace clew::follower {

// Who sleeps on which futex word, as far as recorded results tell.
//
// A recorded wake says how many it woke, not whom: it leaves permits, and a
// waiter that was recorded to return 0 needs one to go on. Waiters recorded to
// end otherwise (time-out, signal) may stop waiting at any time, so they bound
// a wake's count from above only. So do those whom a wake may pass over: after
// a requeue nobody knows who sleeps on which of the two words, so that they are
// one from then on; and where bits say whom a wake is for.
//
// Copyable; a copy is a checkpoint. Not thread-safe.
class FutexTable {
 public:
  // Whom a wait or wake is for: anybody, or who has one of some bits.
  enum class Match : uint8_t { kAny, kBits };

  // Notes that a thread begins to wait. `needs_wake`: it was recorded to return
  // 0, or never to return.
  void Wait(uint64_t addr, bool needs_wake, Match match = Match::kAny);

  // Returns whether a waiter that needs a wake may return now.
  bool MayReturn(uint64_t addr) const;

  // Notes that a waiter returns. REQUIRES: MayReturn(addr) is true if it needs
  // a wake.
  void Return(uint64_t addr, bool needs_wake);

  // Notes a wake for at most `wanted` waiters that was recorded to wake
  // `woken`. Returns false, with nothing changed, if no such outcome is
  // possible now.
  bool Wake(uint64_t addr, uint64_t wanted, uint64_t woken,
            Match match = Match::kAny);
  // The same for one that wakes at most `wanted` waiters on `addr`, and on
  // `other` at most `wanted_there`, `woken` together.
  bool WakeTwo(uint64_t addr, uint64_t wanted, uint64_t other,
               uint64_t wanted_there, uint64_t woken);
  // The same for one that wakes at most `wanted` waiters on `from` and moves up
  // to `moved` others to `to`; `reached` is how many it woke and moved.
  bool Requeue(uint64_t from, uint64_t to, uint64_t wanted, uint64_t moved,
               uint64_t reached);

  // Notes the kernel's wake of one waiter, if any, when a thread exits
  // (set_tid_address(2), CLONE_CHILD_CLEARTID).
  void WakeOnExit(uint64_t addr);

  // Equal tables have equal digests.
  uint64_t Digest() const;

 private:
  struct Word {
    uint64_t strict = 0;       // waiters that need a wake
    uint64_t loose = 0;        // waiters that may leave by themselves
    uint64_t permits = 0;      // wakes not yet used by a waiter
    bool passed_over = false;  // a wake may pass over waiters

    uint64_t Asleep() const { return strict + loose - permits; }
    bool MayWake(uint64_t wanted, uint64_t woken) const;
  };
  uint64_t RootOf(uint64_t addr) const;
  Word& WordAt(uint64_t addr) { return words_[RootOf(addr)]; }
  void Join(uint64_t from, uint64_t to);

  std::map<uint64_t, Word> words_;
  // The address that stands for this one since a requeue.
  std::map<uint64_t, uint64_t> joined_;
};

}  // namespace clew::follower

#endif  // CLEW_FOLLOWER_KERNEL_FUTEX_H_
