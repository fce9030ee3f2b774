#include "solver/independence.h"

#include <functional>
#include <limits>
#include <optional>
#include <utility>

#include "follower/guessed_turns.h"
#include "solver/doubts.h"
#include "solver/search/access_watcher.h"
#include "symbolic/dependence.h"

namespace clew::solver {
namespace {

using follower::Contradiction;
using follower::GuessedTurns;
using follower::Process;
using follower::Recording;

constexpr uint64_t kTurnsPerLook = 1024;  // at the clock

// Runs a process up to the contradiction, which holds its thread up.
class HeldRun {
 public:
  HeldRun(Process process, GuessedTurns turns, const Contradiction& held_at)
      : process_(std::move(process)), turns_(std::move(turns)), at_(held_at) {}

  Process& process() { return process_; }
  const GuessedTurns& turns() const { return turns_; }
  uint64_t turns_taken() const { return taken_; }

  // Takes turns while `may_go()`, of which `on_turn(thread)` is told. Returns
  // whether that ended it.
  Result<bool> Run(const std::function<bool()>& may_go,
                   const std::function<void(size_t)>& on_turn) {
    const auto limit_of = [this](size_t thread) {
      return thread == at_.thread ? at_.insn_index
                                  : std::numeric_limits<uint64_t>::max();
    };
    while (may_go()) {
      CLEW_ASSIGN_OR_RETURN(turn, turns_.Next(process_, limit_of));
      if (!turn) {
        return false;
      }
      on_turn(turn->thread);
      CLEW_ASSIGN_OR_RETURN(advance,
                            process_.Run(turn->thread, turn->until_insn));
      if (advance.stop == follower::Advance::Stop::kContradiction) {
        return false;
      }
      ++taken_;
    }
    return true;
  }

  bool HasSeveralThreads() const {
    int threads = 0;
    for (size_t i = 0; i < process_.thread_count(); ++i) {
      const auto phase = process_.thread(i).phase;
      threads += phase == follower::ThreadPhase::kNotCreated ? 0 : 1;
    }
    return threads > 1;
  }

 private:
  Process process_;
  GuessedTurns turns_;
  const Contradiction& at_;
  uint64_t taken_ = 0;
};

void Ignore(size_t /*thread*/) {}

class IndependenceCheck {
 public:
  IndependenceCheck(const Recording& recording, const Process& start,
                    const Contradiction& contradiction, uint64_t insns_max,
                    const Deadline& deadline)
      : recording_(recording),
        start_(start),
        at_(contradiction),
        insns_max_(insns_max),
        deadline_(deadline),
        words_(start.thread_count(), recording.clock_slack_ticks) {}

  Result<bool> Run() {
    CLEW_ASSIGN_OR_RETURN(base, SkipOneThread());
    if (!base) {
      return false;
    }
    // Twice: what is shared shows when a second thread comes to it.
    for (int pass = 0; pass < 2; ++pass) {
      CLEW_ASSIGN_OR_RETURN(learned, Learn(*base));
      if (!learned) {
        return false;
      }
    }
    if (!DoubtsOf(recording_, start_.tape(), words_).empty()) {
      return false;
    }
    return symbolic::DepartsInEveryOrder(
        base->process(), base->turns(),
        {.thread = at_.thread, .insn = at_.insn_index}, words_.ContestedWords(),
        {.insns_max = insns_max_, .deadline = deadline_.time()});
  }

 private:
  HeldRun FromTheBeginning() const {
    return {start_.Forced(), GuessedTurns(start_, recording_.clock_slack_ticks),
            at_};
  }

  // What one thread did alone has one order: what is accessed counts from the
  // turn on by which there are several. nullopt: there never are, or no time is
  // left.
  Result<std::optional<HeldRun>> SkipOneThread() {
    HeldRun ahead = FromTheBeginning();
    CLEW_ASSIGN_OR_RETURN(
        stopped,
        ahead.Run([&] { return !ahead.HasSeveralThreads() && MayGo(ahead); },
                  Ignore));
    if (!stopped || !ahead.HasSeveralThreads()) {
      return std::optional<HeldRun>();
    }
    HeldRun base = FromTheBeginning();
    CLEW_ASSIGN_OR_RETURN(
        is_there,
        base.Run([&] { return base.turns_taken() + 1 < ahead.turns_taken(); },
                 Ignore));
    return is_there ? std::optional(std::move(base)) : std::nullopt;
  }

  // False: it was not run to its end.
  Result<bool> Learn(HeldRun run) {
    AccessWatcher watcher(run.process(), words_);
    run.process().set_observer(&watcher);
    CLEW_ASSIGN_OR_RETURN(
        stopped, run.Run([&] { return MayGo(run); },
                         [&](size_t thread) { watcher.set_thread(thread); }));
    return !stopped;
  }

  bool MayGo(HeldRun& run) {
    return run.process().retired_total() <= insns_max_ &&
           (++looks_ % kTurnsPerLook != 0 || !deadline_.passed());
  }

  const Recording& recording_;
  const Process& start_;
  const Contradiction& at_;
  uint64_t insns_max_;
  const Deadline& deadline_;
  WordTable words_;
  uint64_t looks_ = 0;
};

}  // namespace

Result<bool> ComesInEveryOrder(const Recording& recording, const Process& start,
                               const Contradiction& contradiction,
                               uint64_t insns_max, const Deadline& deadline) {
  const bool of_a_step = contradiction.kind == Contradiction::Kind::kPath ||
                         contradiction.kind == Contradiction::Kind::kSyscall;
  if (!of_a_step || !start.tape().HasBeginning()) {
    return false;
  }
  return IndependenceCheck(recording, start, contradiction, insns_max, deadline)
      .Run();
}

}  // namespace clew::solver
