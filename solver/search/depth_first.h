#ifndef CLEW_SOLVER_SEARCH_DEPTH_FIRST_H_
#define CLEW_SOLVER_SEARCH_DEPTH_FIRST_H_

#include <cstdint>
#include <vector>

#include "common/digest.h"
#include "common/os/deadline.h"
#include "constraints/verdict.h"
#include "solver/search/digest_set.h"
#include "solver/search/search_path.h"

namespace clew::solver {

struct DepthFirstOptions {
  uint64_t nodes_max = 200'000'000;
  // Jump back over choices that cannot have caused a contradiction. What is
  // jumped over is not counted as refuted, so a search with jumps that finds
  // nothing is not a proof.
  bool back_jumps = false;
  // Share of choices, in 1/1000, at which one thread is held back for a while
  // against the guess; 0 is the guess itself.
  uint32_t holds_per_1000 = 0;
  uint64_t seed = 0;
};

// Depth-first search over choices in guess order: stateless but for digests,
// as the executor goes back by undoing.
//
// Steps that touch nothing contested are taken at once (SearchPath::Advance).
// What is left is a tree whose nodes are states in which each thread that can
// go on stands before a contested step, and whose edges say who takes it:
//
//               s0
//            A /  \ B            frames_: the path, with what is left to try
//            s1    s2
//         B / \ A   \ A
//         s3   X     s3         X: contradiction; s3 is reached twice
//
// Invariant: from a state in `dead` every way on has failed. So s3, once left,
// ends the way over s2 at once: two orders of steps that do not conflict lead
// to one digest, and that is what keeps the tree small. Dead states stay so
// across searches of the same executor, whatever the options.
//
// With back_jumps, a contradiction goes back to the last choice that can have
// caused it, by the conflict set: where one of its reads was taken, too
// early, or the last write of another thread before it. What is jumped over
// counts as skipped, not as dead. With holds_per_1000, some choices hold a
// thread back for a while, against the guess.
//
// Leaves the executor as it found it, except with a witness, where it stands
// at the end of it. kUnsat is returned only if every choice was refuted.
//
// Run may be called again after a time limit: it goes on where it was, also if
// other engines have used the executor in between.
class DepthFirst {
 public:
  // Executor and set are borrowed; the executor must stand at its start.
  DepthFirst(constraints::Executor& executor, DigestSet& dead,
             const DepthFirstOptions& options);

  // Searches until there is an answer or a limit. The counts in the answer are
  // of this call.
  SearchAnswer Run(const Deadline& deadline);
  // Returns whether nothing is left to be tried.
  bool exhausted() const { return started_ && frames_.empty(); }

 private:
  struct Frame {
    SearchPath::Mark mark;
    uint64_t digest;
    size_t choices_begin;  // into choices_
    size_t next;
    bool incomplete;  // something below was jumped over
  };
  enum class Entered : uint8_t { kPushed, kRefuted, kWitness, kLimit };

  Entered SearchOn(const Deadline& deadline);
  Entered Enter();
  void Resume();
  void PushFrame(const SearchPath::Mark& mark, uint64_t digest);
  void PopFrame();
  void JumpBack();
  size_t JumpTarget() const;
  // Returns the frame (1-based, 0 for none) at which another choice would
  // change what the read at `position` in the log returns.
  size_t FrameThatChanges(uint32_t thread, size_t position, uint64_t word,
                          uint32_t size_bytes, int depth) const;
  bool HasAlternative(size_t frame) const;
  void UpdateHolds();
  bool IsHeld(uint32_t thread) const;
  bool LimitReached(const Deadline& deadline);
  SearchAnswer Finish(constraints::Verdict verdict, const char* why);

  constraints::Executor& executor_;
  DigestSet& dead_;
  DepthFirstOptions options_;
  SearchPath path_;
  SearchPath::Mark start_ = {};  // of the call that is under way
  bool started_ = false;
  uint64_t nodes_before_ = 0;  // of former calls
  // What was jumped over; not visited a second time either.
  DigestSet skipped_;
  std::vector<Frame> frames_;
  std::vector<uint32_t> choices_;
  Random random_;
  // By depth: until which depth each thread is held; threads side by side.
  std::vector<uint64_t> held_until_;
  bool root_incomplete_ = false;
  const char* limit_ = "";
  uint32_t limit_checks_ = 0;
};

}  // namespace clew::solver

#endif  // CLEW_SOLVER_SEARCH_DEPTH_FIRST_H_
