#ifndef CLEW_CONSTRAINTS_EXECUTOR_H_
#define CLEW_CONSTRAINTS_EXECUTOR_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/access.h"
#include "common/units.h"

// The interface through which the search runs the program: "execute this step
// now", with undo. It hides machine and recording.

namespace clew::constraints {

enum class StepResult : uint8_t {
  kOk,
  kFinished,       // done, and it was the actor's last one
  kContradiction,  // evidence violated; see Executor::last_contradiction()
  kBlocked,        // not Enabled; nothing has happened
};

inline constexpr uint32_t kNoThread = ~uint32_t{0};

// A read on whose value a contradiction depended: an element of its conflict
// set.
struct ConflictRead {
  // kNoThread: not a read, but what memory at `word` holds at the end.
  uint32_t thread = 0;
  // The thread's step that made the read: the number of successful Steps of
  // that thread on this path before it.
  uint64_t step = 0;
  TraceeAddr word;  // the address read
  uint32_t size_bytes = 8;
};

struct Contradiction {
  uint32_t thread = 0;
  TraceeAddr ip;
  std::string text;  // what was found and what was recorded
  // The reads of which other values would have avoided it. May be incomplete or
  // empty; it guides the search and proves nothing.
  std::vector<ConflictRead> conflict_set;
};

// What an actor would do next, in the current state.
struct NextStep {
  AccessKind kind = AccessKind::kRead;
  std::optional<TraceeAddr> word;  // unknown if not looked at yet
  uint32_t size_bytes = 8;
  TscInterval time;
  // False: no choice is lost by taking it now. Either nothing that another
  // thread may still do before or after it conflicts with it, or it changes
  // nothing and what was recorded of it holds now (a spin, a failed
  // compare-and-swap). Such steps the search takes at once.
  bool contested = true;
};

// A deterministic program at some point of some interleaving. Who may take a
// step is an actor: a thread or, under a memory model in which stores wait, the
// buffer of one (machine/store_buffer.h). The search asks no more of it than is
// said here. Actors are numbered from 0, threads first. Everything depends on
// the sequence of Steps alone.
//
// Not thread-safe. Undo memory grows with the path, not with the search.
class Executor {
 public:
  using Mark = size_t;

  virtual ~Executor() = default;

  virtual uint32_t actor_count() const = 0;
  virtual bool Finished(uint32_t actor) const = 0;
  // Returns whether time, core order and synchronisation facts permit the
  // actor's next step. A finished actor is not enabled, nor is a buffer in
  // which nothing waits.
  virtual bool Enabled(uint32_t actor) const = 0;
  // Returns what the actor would do next. REQUIRES: !Finished(actor).
  virtual NextStep Next(uint32_t actor) const = 0;

  // Runs a thread through its next contested access and then eagerly up to, and
  // not including, its following contested access (or to its end), or lets the
  // oldest store leave a buffer. After kContradiction the state is not defined
  // until RollBack.
  virtual StepResult Step(uint32_t actor) = 0;

  // Marks are rolled back in LIFO order: RollBack(m) restores the state at
  // SetMark and forgets all marks set after it; m itself stays valid.
  virtual Mark SetMark() = 0;
  virtual void RollBack(Mark mark) = 0;

  // Equal states (positions of all threads, and all memory and registers on
  // which anything to come may depend) have equal digests.
  virtual uint64_t StateDigest() const = 0;

  // Returns where the actor's next step lies in the time-merged guess; smaller
  // is earlier; comparable between actors. REQUIRES: !Finished(actor).
  virtual double GuessKey(uint32_t actor) const = 0;

  // Returns how much of what is demanded of the end (final memory) does not
  // hold; 0 is a witness. If it is above 0, last_contradiction() says what.
  // REQUIRES: all actors are finished.
  virtual uint64_t EndViolations() { return 0; }

  // Returns the last contradiction. Valid after kContradiction or
  // EndViolations() > 0, until the next Step.
  virtual const Contradiction& last_contradiction() const = 0;
};

// One actor number per Step.
using StepOrder = std::vector<uint32_t>;

}  // namespace clew::constraints

#endif  // CLEW_CONSTRAINTS_EXECUTOR_H_
