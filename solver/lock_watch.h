#ifndef CLEW_SOLVER_LOCK_WATCH_H_
#define CLEW_SOLVER_LOCK_WATCH_H_

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "common/units.h"
#include "machine/cpu.h"
#include "machine/memory.h"
#include "machine/registers.h"
#include "solver/call_stack.h"
#include "solver/code_guide.h"

namespace clew::solver {

// A lock that a thread holds.
struct HeldLock {
  uint64_t addr = 0;
  bool shared = false;  // a read-write lock in its read form
  TraceeAddr site;      // where the program took it
  uint32_t depth = 1;   // how often, of one that may be taken again
};

// The function of LockCall's that a thread is in.
struct LockWait {
  LockCall call = LockCall::kNone;
  uint64_t addr = 0;  // of the lock, condition variable or thread
  uint64_t slot = 0;  // of its return address
  TraceeAddr site;    // where the program called it
  std::optional<HeldLock> mutex = {};  // kWaitCondition: given back meanwhile
};

// Which locks the threads of a witness hold: docs/design/races.md has how that
// is known. Not thread-safe.
class LockWatch {
 public:
  explicit LockWatch(const machine::Memory& memory) : memory_(memory) {}

  // What an instruction accesses, and how the thread is then.
  struct Moment {
    size_t thread = 0;
    const machine::ObservedAccess& access;
    const machine::Registers& registers;
    const CallStack& stack;
    LockCall call = LockCall::kNone;  // the function that accesses
    bool of_program = false;          // its own code accesses
    TraceeAddr site;  // the place in the program that accesses, or called it
  };

  // Notes an access, between CallStack::Drop and CallStack::Note. Returns
  // whether it is a lock's own: made by a function of LockCall, or to a word
  // that a thread holds.
  bool Note(const Moment& moment);
  // Notes what the last access left in memory. Note does so first.
  void Settle();

  // The locks that the thread holds, as a number for Exclude.
  uint32_t HeldBy(size_t thread) const;
  // Whether threads that hold these are never at work at the same time: one
  // lock is in both, and not in its read form in both.
  bool Exclude(uint32_t held, uint32_t other) const;

  const std::vector<HeldLock>& Held(size_t thread) { return Of(thread).held; }
  // The function that the thread has not returned from; nullopt: it is in none.
  const std::optional<LockWait>& InCall(size_t thread) {
    return Of(thread).in_call;
  }
  bool IsHeld(uint64_t addr) const { return holders_.contains(addr); }

  // A lock that a thread took or gave back.
  struct Change {
    size_t thread = 0;
    uint64_t addr = 0;
    bool taken = false;
  };
  // Returns those since this was asked.
  std::vector<Change> TakeChanges() { return std::exchange(changes_, {}); }

 private:
  struct Thread {
    std::vector<HeldLock> held = {};
    std::optional<LockWait> in_call = {};
    uint32_t set = 0;  // of `held`
  };
  // An atomic read-modify-write whose outcome memory has with the next access.
  struct Update {
    size_t thread = 0;
    uint64_t addr = 0;
    uint32_t size_bytes = 0;
    uint64_t before = 0;
    bool of_program = false;
    TraceeAddr site;
  };
  using Set = std::vector<std::pair<uint64_t, bool>>;  // address, shared

  Thread& Of(size_t thread);
  void Enter(const Moment& moment);
  void Return(Thread& thread, uint64_t result);
  void Take(Thread& thread, const HeldLock& lock);
  std::optional<HeldLock> Give(Thread& thread, uint64_t addr);
  void GiveWord(uint64_t addr);
  void NoteChange(size_t thread, uint64_t addr);
  void NoteWord(const Moment& moment);
  void Number(Thread& thread);

  const machine::Memory& memory_;
  std::vector<Thread> threads_;
  std::vector<Change> changes_;
  std::optional<Update> update_;
  std::unordered_map<uint64_t, size_t> holders_;  // of one that is not shared
  std::unordered_set<uint64_t> counters_;  // words that only looked like locks
  std::map<Set, uint32_t> numbers_ = {{{}, 0}};
  std::vector<Set> sets_ = {{}};
};

}  // namespace clew::solver

#endif  // CLEW_SOLVER_LOCK_WATCH_H_
