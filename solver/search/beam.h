#ifndef CLEW_SOLVER_SEARCH_BEAM_H_
#define CLEW_SOLVER_SEARCH_BEAM_H_

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "common/os/deadline.h"
#include "constraints/verdict.h"
#include "solver/search/search_path.h"

namespace clew::solver {

struct BeamOptions {
  size_t width_min = 64;
  size_t width_max = 65'536;  // the width grows by 4 up to it
  uint64_t memory_bytes_max = uint64_t{1} << 30;
  uint64_t nodes_max = 200'000'000;
};

// Breadth-first search over states, in levels of equal numbers of steps. Equal
// states are merged and count their paths; of each level the states with the
// most paths are kept. Better than depth-first where evidence is thin but
// constant: it forgets the past and never the alternatives.
//
//     steps taken   0      1      2      3
//                   s --A--> a --B--> c ...     a state's count of paths is the
//                     \B--> b --A--/            sum of its parents': c has 2
//
// Many paths to a state are a sign that little was decided on the way to it, so
// that little of it can be wrong; states that only one order leads to go first
// when a level is cut to `width`. A round that cut something and found nothing
// is followed by one with four times the width.
//
// Invariant: a level holds every state that can be reached in so many steps
// without a contradiction, unless a level before it was cut.
//
// A level that was never cut makes the search complete: only then kUnsat.
// States are kept as a tree of choices and reached by stepping from their last
// common ancestor, so that any executor will do.
class Beam {
 public:
  // Both are borrowed. With a witness the executor stands at its end,
  // otherwise at its start.
  Beam(constraints::Executor& executor, const BeamOptions& options,
       const Deadline& deadline);

  SearchAnswer Run();

 private:
  static constexpr uint32_t kNone = ~uint32_t{0};

  struct Node {
    uint32_t parent;
    uint32_t thread;  // the choice that leads here
    uint32_t uses;    // children and levels that hold it
    uint32_t depth;   // choices
    double log_paths;
    uint64_t digest;
    uint64_t serial;  // indices are used again, serials are not
  };
  struct Level {
    std::vector<uint32_t> nodes;
    std::unordered_map<uint64_t, uint32_t> by_digest;
  };
  enum class Round : uint8_t { kWitness, kRefuted, kCut, kLimit };

  Round RunRound(size_t width);
  bool ExpandLevel(Level& level);
  bool Expand(uint32_t node);
  void Keep(uint32_t parent, uint32_t thread, double log_paths);
  bool CutLevel(Level& level, size_t width);
  void MoveTo(uint32_t node);
  void Release(uint32_t node);
  uint32_t NewNode(Node node);
  void Reset();
  bool LimitReached();
  SearchAnswer Finish(constraints::Verdict verdict, const char* why);

  constraints::Executor& executor_;
  BeamOptions options_;
  const Deadline& deadline_;
  SearchPath path_;
  SearchPath::Mark start_;
  std::vector<Node> nodes_;
  std::vector<uint32_t> free_;
  std::map<uint64_t, Level> levels_;  // by number of steps
  // Where the executor stands: nodes from the root, each with the mark after
  // its choice and all eager steps.
  struct Standing {
    uint64_t serial;
    SearchPath::Mark mark;
  };
  uint64_t next_serial_ = 0;
  std::vector<Standing> standing_;
  const char* limit_ = "";
};

}  // namespace clew::solver

#endif  // CLEW_SOLVER_SEARCH_BEAM_H_
