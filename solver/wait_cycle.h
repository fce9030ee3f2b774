#ifndef CLEW_SOLVER_WAIT_CYCLE_H_
#define CLEW_SOLVER_WAIT_CYCLE_H_

#include <cstdint>
#include <vector>

#include "common/units.h"
#include "solver/lock_watch.h"

namespace clew::solver {

// Why a thread sleeps that nothing woke, and whom its waking is left to.
struct WaitingThread {
  enum class For : uint8_t {
    kUnknown,    // a futex word of which nothing else is known
    kLock,       // a mutex, or a read-write lock in its write form
    kReadLock,   // a read-write lock in its read form
    kCondition,  // a condition variable
    kThread,     // the end of `joined`
  };
  Tid thread;
  For what = For::kUnknown;
  uint64_t addr = 0;     // of the lock, or the futex word
  TraceeAddr site = {};  // in the program, where it waits
  Tid joined = {};       // kThread
  std::vector<HeldLock> held = {};
  // Behind OrderByCycle: it waits for the next one of the cycle, and the last
  // one for the first.
  bool in_cycle = false;
};

// Puts the threads of a cycle first, in its order, the others behind them.
//
// A thread that waits for a lock waits for those that hold it; in its read
// form, where nobody holds it otherwise, for those that want it in its write
// form, which come first. One that waits for a thread's end waits for that
// thread. One that waits for a condition waits, where nothing else makes a
// cycle, for those that wait for a lock which it holds: they cannot signal.
void OrderByCycle(std::vector<WaitingThread>& threads);

}  // namespace clew::solver

#endif  // CLEW_SOLVER_WAIT_CYCLE_H_
