#ifndef CLEW_CONSTRAINTS_THREAD_PROGRAM_H_
#define CLEW_CONSTRAINTS_THREAD_PROGRAM_H_

#include <cstdint>
#include <vector>

#include "common/result.h"
#include "constraints/trace.h"

namespace clew::constraints {

inline constexpr uint32_t kNoSlot = ~uint32_t{0};

// One operation on a thread's values.
struct SlotOp {
  const Expr* e;
  uint32_t target;
  std::array<uint32_t, 3> operands;  // slots; kNoSlot where there is none
};

// What happens to a thread's values at one access, after it has read.
struct AccessProgram {
  uint32_t read_slot = kNoSlot;     // takes the value read
  uint32_t written_slot = kNoSlot;  // holds the value to write
  // Ranges into ThreadProgram::ops and so on.
  uint32_t ops_begin = 0, ops_end = 0;
  uint32_t checks_begin = 0, checks_end = 0;
  uint32_t born_begin = 0, born_end = 0;
  uint32_t dead_begin = 0, dead_end = 0;
  // A read that only feeds conditions checked right here: where they hold, it
  // changes nothing.
  bool pure_test = false;
};

// The expressions of one thread, compiled to straight-line code: every node is
// computed once, at the access that makes its last variable known, and every
// condition is checked as soon as it can be.
struct ThreadProgram {
  std::vector<AccessProgram> accesses;
  std::vector<SlotOp> ops;
  struct Check {
    uint32_t slot;
    uint32_t path_index;  // into ConstraintTrace::path
  };
  std::vector<Check> checks;
  // Slots on which something later depends, from `born` until `dead`.
  std::vector<uint32_t> born;
  std::vector<uint32_t> dead;
  std::vector<uint64_t> start;  // slot values before the first access
};

// Compiles the expressions of one thread. Fails with kUnsupported if they
// mention an unknown: only Z3 can choose values. REQUIRES: the trace is valid.
[[nodiscard]] Result<ThreadProgram> CompileThread(const ConstraintTrace& trace,
                                                  uint32_t thread);

}  // namespace clew::constraints

#endif  // CLEW_CONSTRAINTS_THREAD_PROGRAM_H_
