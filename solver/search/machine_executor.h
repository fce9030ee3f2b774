#ifndef CLEW_SOLVER_SEARCH_MACHINE_EXECUTOR_H_
#define CLEW_SOLVER_SEARCH_MACHINE_EXECUTOR_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_set>
#include <vector>

#include "common/inputs.h"
#include "common/result.h"
#include "common/schedule.h"
#include "constraints/executor.h"
#include "follower/guess.h"
#include "follower/order_rules.h"
#include "follower/process.h"
#include "solver/search/access_watcher.h"
#include "solver/search/cuts.h"
#include "solver/search/word_table.h"

namespace clew::solver {

// A recorded process as the search sees it. A step of a thread runs it through
// its next contested instruction and on to the one after, as far as time and
// core order permit. Under a memory model it ends before an instruction that
// finds the store buffer empty, such as a fence, if stores wait; those to words
// that nobody contests leave as parts of steps, each other one is a step of its
// queue.
//
// Which instructions are contested is fixed when the executor is made, and
// where steps are cut besides. Further contested ones that it meets are learned
// by the word table, and where a step that contradicted would have to be cut is
// in exposed(). A search that refuted every choice has refuted every
// interleaving if the table has not learned anything, and exposed() is empty
// (docs/design/solve.md, "When unsat is said").
class MachineExecutor final : public constraints::Executor {
 public:
  // `failure` and `words` are borrowed. Leaves marks on its own copy of
  // `start`.
  MachineExecutor(const follower::Process& start, const Failure& failure,
                  uint64_t clock_slack_ticks, WordTable& words, Cuts cuts,
                  follower::GuessOptions guess);
  ~MachineExecutor() override;
  MachineExecutor(const MachineExecutor&) = delete;
  MachineExecutor& operator=(const MachineExecutor&) = delete;

  uint32_t actor_count() const override;
  bool Finished(uint32_t number) const override;
  bool Enabled(uint32_t number) const override;
  constraints::NextStep Next(uint32_t number) const override;
  constraints::StepResult Step(uint32_t number) override;
  Mark SetMark() override;
  void RollBack(Mark mark) override;
  uint64_t StateDigest() const override;
  double GuessKey(uint32_t number) const override;
  uint64_t EndViolations() override;
  const constraints::Contradiction& last_contradiction() const override;

  // Returns what stopped the machine (kUnsupported, kLimit), if anything did;
  // every step is a contradiction from then on.
  const std::optional<Error>& error() const { return error_; }

  // Returns where steps that contradicted read memory while another thread
  // might have acted first, and no step begins.
  const Cuts& exposed() const { return exposed_; }

  // Takes the steps of `order` and returns them as a schedule. REQUIRES: the
  // executor stands at its start.
  std::vector<ScheduleStep> ScheduleOf(const constraints::StepOrder& order);

 private:
  struct Undo {
    follower::Process::Mark process;
    follower::OrderRules::Progress progress;
    std::vector<size_t> steps;  // by actor
  };
  // What a thread's step read, for conflict sets.
  struct StepRead {
    uint64_t word = 0;
    bool reads = false;
  };

  // Where a step began.
  struct Begin {
    uint64_t insn = 0;
    uint64_t block = 0;
    uint64_t block_insn = 0;  // the block's first one
    bool contested = false;   // a choice between known conflicts
  };

  constraints::StepResult RunThread(uint32_t thread);
  constraints::StepResult Flush(uint32_t number);
  void TakeFlush(size_t thread, uint32_t queue);
  void FlushPrivate(size_t thread);
  bool IsContested(const machine::WaitingStore& store) const;
  Begin BeginOf(uint32_t thread) const;
  uint64_t NextStop(uint32_t thread, uint64_t insn) const;
  bool OthersEnabled(uint32_t thread) const;
  void NoteExposed(uint32_t thread, const Begin& begin);
  void ExposeBlocks(uint32_t thread, const Begin& begin, uint64_t first,
                    uint64_t end);
  StreamBlock BlockAt(uint32_t thread, uint64_t position) const;
  void Expose(uint32_t thread, uint64_t insn);
  // Keeps `found`, or the error if there was one, as the last contradiction,
  // with the reads of `thread` as its conflict set.
  constraints::StepResult Contradict(uint32_t thread,
                                     const follower::Contradiction& found);
  template <class T>
  T Value(const Result<T>& result, T otherwise) const;

  const Failure& failure_;
  follower::Process process_;
  mutable follower::OrderRules rules_;
  mutable follower::Guess guess_;
  std::vector<WordTable::Contested> contested_;  // by thread
  // As they were known when the executor was made; empty without a model.
  std::unordered_set<uint64_t> contested_words_;
  Cuts cuts_;
  Cuts exposed_;
  std::vector<std::vector<StepRead>> steps_;  // by actor
  std::vector<Undo> marks_;
  AccessWatcher watcher_;
  std::vector<ScheduleStep>* log_ = nullptr;  // where steps are written down
  constraints::Contradiction contradiction_;
  mutable std::optional<Error> error_;
};

}  // namespace clew::solver

#endif  // CLEW_SOLVER_SEARCH_MACHINE_EXECUTOR_H_
