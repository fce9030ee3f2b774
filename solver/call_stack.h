#ifndef CLEW_SOLVER_CALL_STACK_H_
#define CLEW_SOLVER_CALL_STACK_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "common/units.h"
#include "machine/cpu.h"

namespace clew::solver {

// The calls that a thread is in, from what its instructions do to the stack: a
// CALL writes the address of what follows it, a RET reads that again. Frames
// below the stack pointer are over, however they were left.
//
// Calls made before the first access that was seen are not known. Not
// thread-safe.
class CallStack {
 public:
  struct Frame {
    uint64_t slot = 0;     // where the return address lies
    TraceeAddr return_to;  // what follows the CALL
    TraceeAddr caller;     // the innermost of these in the program; 0: none
  };
  using IsProgram = std::function<bool(TraceeAddr)>;

  // Notes that the stack pointer is `rsp`, at the instruction that accesses.
  void Drop(uint64_t rsp);
  // Notes an access, behind Drop. `is_program` is asked of each CALL.
  void Note(const machine::ObservedAccess& access, const IsProgram& is_program);

  // The innermost call; REQUIRES: !empty().
  const Frame& top() const { return frames_.back(); }
  bool empty() const { return frames_.empty(); }
  // Where the program called what runs; 0: not known, or nothing of it did.
  TraceeAddr caller() const { return empty() ? TraceeAddr() : top().caller; }

  // Whether the access is that of a RET from the innermost call.
  bool Returns(const machine::ObservedAccess& access) const;

 private:
  std::vector<Frame> frames_;
};

}  // namespace clew::solver

#endif  // CLEW_SOLVER_CALL_STACK_H_
