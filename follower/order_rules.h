#ifndef CLEW_FOLLOWER_ORDER_RULES_H_
#define CLEW_FOLLOWER_ORDER_RULES_H_

#include <cstdint>
#include <vector>

#include "common/result.h"
#include "common/stream.h"
#include "follower/process.h"

namespace clew::follower {

// The order facts that hold whatever any value is: time, and the order of
// slices on each core. (Creation of threads and futexes are in the process.)
//
// Time: an instruction may retire only if every other thread's next one may
// still retire after it: lo <= hi + slack for all of them.
// Core: a slice begins only after every earlier slice of its core is complete.
// Slices of threads that have no stream (of other processes, of the kernel)
// order nothing: those around them are in order anyway.
// Under a memory model a store has left when the slice ends in which it was
// made: the kernel that switches the core finds the buffer empty.
//
// Follows one run forward; a copy belongs to a copy of the process.
class OrderRules {
 public:
  // Takes slices and thread numbers from `process`. `slack_ticks` is how far
  // apart the clocks of two cores may be (bundle.proto,
  // Timing.clock_slack_ticks).
  OrderRules(const Process& process, uint64_t slack_ticks);

  // Returns whether time and core order permit the thread's next instruction
  // now; false at the end of its stream. Fails as Process::NextBlock does.
  [[nodiscard]] Result<bool> Permits(const Process& process, size_t thread);

  // How many slices of each core are known to be over, to go back to.
  using Progress = std::vector<size_t>;
  const Progress& progress() const { return complete_; }
  void set_progress(const Progress& progress) { complete_ = progress; }

 private:
  bool StoresPermit(const Process& process, size_t thread, uint64_t lo) const;
  Result<bool> Complete(const Process& process, uint32_t slice) const;
  Result<bool> CorePermits(const Process& process, uint32_t slice);

  static constexpr size_t kNoThread = ~size_t{0};
  static constexpr size_t kNoCore = ~size_t{0};

  uint64_t slack_ticks_;
  const std::vector<Slice>* slices_;          // the tape's
  std::vector<size_t> slice_thread_;          // by slice id
  std::vector<uint32_t> slice_ordinal_;       // position within its thread
  std::vector<std::vector<uint32_t>> cores_;  // by dense core number: slices
  Progress complete_;                         // by dense core number
  std::vector<size_t> slice_core_;            // by slice id: dense core number
};

}  // namespace clew::follower

#endif  // CLEW_FOLLOWER_ORDER_RULES_H_
