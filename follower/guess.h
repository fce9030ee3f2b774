#ifndef CLEW_FOLLOWER_GUESS_H_
#define CLEW_FOLLOWER_GUESS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "common/result.h"
#include "follower/process.h"

namespace clew::follower {

struct GuessOptions {
  uint64_t seed = 1;
  // Instructions a thread runs at a time: grain_insns / 2 up to
  // grain_insns * 3 / 2, from the seed, the thread and its position.
  uint32_t grain_insns = 64;
};

// The time-merged guess: where each thread's next instruction lies on the
// common clock, interpolated between the timing packets around it by counting
// instructions. A guess, never evidence: bounds are in OrderRules.
//
// Deterministic in the process's state. A copy belongs to a copy of the
// process. Fails as Process::NextBlock does.
class Guess {
 public:
  explicit Guess(const Process& process, GuessOptions options);

  // Returns the estimated tick of the thread's next instruction. REQUIRES (of
  // the next two as well): its stream has not ended.
  [[nodiscard]] Result<double> KeyOf(const Process& process, size_t thread);
  // Returns the end of the stretch with the same lower time bound, as
  // ThreadState::retired.
  [[nodiscard]] Result<uint64_t> GroupEnd(const Process& process,
                                          size_t thread);
  // Returns how far the thread may run in one go: the end of its grain or of
  // that stretch.
  [[nodiscard]] Result<uint64_t> GrainEnd(const Process& process,
                                          size_t thread);

 private:
  // A stretch of consecutive blocks with the same lower time bound.
  struct Group {
    uint64_t first_block = 1;
    uint64_t end_block = 0;  // empty to begin with
    uint64_t first_insn = 0;
    uint64_t insn_count = 0;
    double begin_tick = 0;
    double end_tick = 0;
  };
  Result<const Group*> GroupOf(const Process& process, size_t thread);

  GuessOptions options_;
  std::vector<Group> groups_;  // by thread
};

}  // namespace clew::follower

#endif  // CLEW_FOLLOWER_GUESS_H_
