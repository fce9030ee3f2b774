#ifndef CLEW_SOLVER_SEARCH_REPAIR_H_
#define CLEW_SOLVER_SEARCH_REPAIR_H_

#include <cstdint>
#include <vector>

#include "common/digest.h"
#include "common/os/deadline.h"
#include "constraints/verdict.h"
#include "solver/search/search_path.h"

namespace clew::solver {

struct RepairOptions {
  uint64_t seed = 1;
  uint64_t moves_max = 1'000'000;
  // Moves without progress after which it starts again from the guess.
  uint64_t stale_moves_max = 20'000;
};

// Local search over whole runs, driven by the evidence that is violated.
//
// A run follows an order of steps to its end or to its first contradiction. A
// move takes a read that the violated evidence depended on (or another access
// of that word) and holds its thread back until another thread has written the
// word, or holds the last foreign writer back until after the read; all else
// keeps its order as far as it can. A run that gets at least as far (at the
// end: with at most as many violations) becomes the current one.
//
// Worked example: A and B each run t = x; x = t + 1, and x was 1 at the end,
// which says that an update was lost.
//
//     current run   A: t = x   A: x = 1   B: t = x   B: x = 2    x is not 1
//     move          the last read of x is B's: A's write, which it read, is
//                   held back until B has read
//     new run       A: t = x   B: t = x   A: x = 1   B: x = 1    witness
//
// Invariant: the current run is one that the executor took from its start, so
// that a run to the end without a violation is a witness. Its score is not
// monotonic: a worse run is accepted now and then (kAcceptWorseOneIn), and
// after stale_moves_max moves without a new best score the search starts again.
//
// Best where few choices of the guess are wrong and for evidence at the end
// (final memory, a wrong sum). It proves nothing: it never returns kUnsat.
class Repair {
 public:
  // The executor is borrowed and must stand at its start.
  Repair(constraints::Executor& executor, const RepairOptions& options);

  // Searches until there is a witness or a limit. With a witness, the executor
  // stands at its end, otherwise at its start. May be called again after a time
  // limit and then goes on with the run it had. The counts in the answer are of
  // this call.
  SearchAnswer Run(const Deadline& deadline);

 private:
  using Entry = SearchPath::Entry;

  // What a run came to; larger scores are better. Its log is filled in when
  // it is accepted.
  struct Attempt {
    uint64_t score = 0;
    bool witness = false;
    std::vector<Entry> log;
    constraints::Contradiction contradiction;
  };
  // `thread` takes no step from log position `from` on until `until_thread`
  // has made `until_steps` steps, or, if that is kNoThread, until another
  // thread has made an access of the range in conflict with its own.
  struct Hold {
    size_t from;
    uint32_t thread;
    uint32_t until_thread;
    uint64_t until_steps;
    uint64_t word;
    uint32_t size_bytes;
    bool reads_release;  // reads count as well as writes
  };

  bool ChooseMove(Hold& hold);
  // An access at a position of the current run's log, or the one that failed
  // right after it.
  struct Place {
    size_t position;
    Entry access;
  };
  bool ChoosePlace(Place& place);
  bool PlaceAt(size_t position, Place& place) const;
  bool ChooseFromWord(const constraints::ConflictRead& read, Place& place);
  void ChaseWriter(Place& place);
  void FillHold(const Place& place, Hold& hold);
  void Try(const Hold& hold);
  void GoTo(size_t position);
  // Progress of a move. A step is owed if the current run has taken it and the
  // new one has not yet, because its thread is held, waits or is blocked.
  struct Following {
    bool held;
    bool catch_up;  // the held thread takes owed steps as soon as released
    std::vector<uint64_t> owed;  // by thread
  };
  bool MayStep(uint32_t thread, const Hold& hold, const Following& state) const;
  bool StepIfPossible(uint32_t thread, const Hold& hold, Following& state);
  bool CatchUp(const Hold& hold, Following& state);
  bool FollowStep(uint32_t thread, const Hold& hold, Following& state);
  bool FollowGuess(const Hold& hold, Following& state);
  uint32_t NextByGuess(uint32_t except) const;
  bool IsReleased(const Hold& hold, const Entry& done) const;
  enum class Taken : uint8_t { kStep, kNothing, kContradiction };
  Taken TakeStep(uint32_t thread);
  void Wake(const Entry& done);
  void BackToStart();
  void FinishAttempt(bool contradicted);
  void StartFromGuess();
  void Resume();
  bool Accept();
  void TakeAttempt();
  SearchAnswer Finish(constraints::Verdict verdict, const char* why);

  constraints::Executor& executor_;
  RepairOptions options_;
  SearchPath path_;
  Random random_;
  Attempt current_;
  Attempt attempt_;
  // Threads whose next step found a value that does not fit.
  struct Wait {
    bool waits = false;
    uint64_t word = 0;
    uint32_t size_bytes = 0;
  };
  std::vector<Wait> waits_;
  std::vector<SearchPath::Mark> marks_;  // every kMarkEvery steps
  size_t same_as_current_ = 0;           // common prefix of path and current_
  uint64_t best_score_ = 0;
  bool started_ = false;
  uint64_t moves_ = 0;
  uint64_t stale_moves_ = 0;
};

}  // namespace clew::solver

#endif  // CLEW_SOLVER_SEARCH_REPAIR_H_
