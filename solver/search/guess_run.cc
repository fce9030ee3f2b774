#include "solver/search/guess_run.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "common/check.h"
#include "follower/failure_check.h"
#include "follower/guessed_turns.h"
#include "solver/search/access_watcher.h"

namespace clew::solver {
namespace {

// Between two looks at the clock.
constexpr uint64_t kLookInsns = 50'000;

// One run: the state that changes, and the choice of who goes next.
class Run {
 public:
  Run(std::shared_ptr<RunPoint> from, std::span<const OrderEdge> edges,
      WordTable* words)
      : process_(from->process),
        rules_(from->rules),
        guess_(from->guess),
        edges_(edges.begin(), edges.end()),
        last_(std::move(from)) {
    if (words != nullptr) {
      learner_.emplace(process_, *words);
      process_.set_observer(&*learner_);
    }
    DropPast();
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  // The enabled thread that is earliest in the guess; nullopt: none.
  Result<std::optional<follower::Turn>> Choose() {
    return follower::NextTurn(process_, rules_, guess_,
                              [this](size_t t) { return LimitOf(t); });
  }

  Result<follower::Advance> Step(const follower::Turn& choice) {
    if (learner_) {
      learner_->set_thread(choice.thread);
    }
    CLEW_ASSIGN_OR_RETURN(advance,
                          process_.Run(choice.thread, choice.until_insn));
    NoteStep(choice.thread);
    return advance;
  }

  void SetPoint() {
    auto point = std::make_shared<RunPoint>(
        RunPoint{.process = process_,
                 .rules = rules_,
                 .guess = guess_,
                 .history = std::make_shared<RunHistory>(
                     std::exchange(steps_, {}), last_->history),
                 .previous = last_});
    point->process.set_observer(nullptr);
    last_ = std::move(point);
    DropPast();
  }

  // Leaves points that are an eighth of their distance from the end apart.
  void ThinPoints() {
    const uint64_t end = last_->process.retired_total();
    for (RunPoint* point = last_.get(); point->previous != nullptr;) {
      const std::shared_ptr<RunPoint> next = point->previous;
      const RunPoint* const after = next->previous.get();
      const uint64_t at = point->process.retired_total();
      if (after != nullptr &&
          at - after->process.retired_total() < (end - at) / 8) {
        point->previous = next->previous;
      } else {
        point = next.get();
      }
    }
  }

  // Keeps the points of the last `insns` instructions and the one before, and
  // the tape from there on.
  void ForgetBefore(uint64_t insns) {
    RunPoint* oldest = last_.get();
    const uint64_t end = oldest->process.retired_total();
    while (end - oldest->process.retired_total() < insns) {
      if (oldest->previous == nullptr) {
        return;
      }
      oldest = oldest->previous.get();
    }
    if (oldest->previous == nullptr) {
      return;
    }
    oldest->previous.reset();
    for (size_t i = 0; i < process_.thread_count(); ++i) {
      const follower::ThreadState& state = oldest->process.thread(i);
      process_.tape().Forget(i, state.block, state.input);
    }
  }

  RunOutcome Finish(RunOutcome::End end, follower::Contradiction contradiction,
                    bool all_ended) {
    const bool without_choice =
        (end == RunOutcome::End::kContradiction &&
         IsAlone(contradiction.thread)) ||
        (end == RunOutcome::End::kStuck && process_.thread_count() == 1);
    return {.end = end,
            .contradiction = std::move(contradiction),
            .last = last_,
            .steps = std::move(steps_),
            .retired_total = process_.retired_total(),
            .all_ended = all_ended,
            .without_choice = without_choice};
  }

  // What the only thread that there is waits for will not come.
  follower::Contradiction NobodyGoesOn() const {
    const follower::ThreadState& state = process_.thread(0);
    const bool waits_in_call = state.phase == follower::ThreadPhase::kInCall;
    return {.kind = follower::Contradiction::Kind::kFutex,
            .thread = 0,
            .tid = process_.tid(0),
            .insn_index = state.retired,
            .ip = state.registers.rip,
            .inputs = state.input + (waits_in_call ? 1 : 0),
            .text = "waits, and there is no other thread to end that"};
  }

  follower::Process& process() { return process_; }

 private:
  bool IsAlone(size_t thread) const {
    for (size_t i = 0; i < process_.thread_count(); ++i) {
      if (i != thread &&
          process_.thread(i).phase != follower::ThreadPhase::kNotCreated) {
        return false;
      }
    }
    return true;
  }
  bool Past(const InsnRef& ref) const {
    return process_.thread(ref.thread).retired > ref.insn;
  }
  // Edges that can have no effect any more.
  void DropPast() {
    std::erase_if(edges_, [this](const OrderEdge& edge) {
      return Past(edge.before) || Past(edge.after);
    });
  }
  uint64_t LimitOf(size_t thread) const {
    uint64_t limit = std::numeric_limits<uint64_t>::max();
    for (const OrderEdge& edge : edges_) {
      if (edge.after.thread == thread && !Past(edge.after) &&
          !Past(edge.before)) {
        limit = std::min(limit, edge.after.insn);
      }
    }
    return limit;
  }
  void NoteStep(size_t thread) {
    const uint64_t retired = process_.thread(thread).retired;
    if (retired > 0) {
      AppendRun(steps_, process_.tid(thread), retired);
    }
  }

  follower::Process process_;
  follower::OrderRules rules_;
  follower::Guess guess_;
  std::vector<OrderEdge> edges_;
  std::shared_ptr<RunPoint> last_;
  std::vector<ScheduleStep> steps_;
  std::optional<AccessWatcher> learner_;
};

}  // namespace

RunHistory::~RunHistory() {
  while (previous != nullptr && previous.use_count() == 1) {
    previous = std::exchange(previous->previous, nullptr);
  }
}

std::shared_ptr<RunPoint> FirstPoint(const follower::Process& start,
                                     uint64_t clock_slack_ticks,
                                     follower::GuessOptions options) {
  return std::make_shared<RunPoint>(
      RunPoint{.process = start,
               .rules = follower::OrderRules(start, clock_slack_ticks),
               .guess = follower::Guess(start, options),
               .history = nullptr,
               .previous = nullptr});
}

GuessRunner::GuessRunner(const Failure& failure, WordTable* words,
                         GuessRunOptions options, ProgressSink* progress)
    : failure_(failure),
      words_(words),
      options_(options),
      progress_(progress) {}

Result<RunOutcome> GuessRunner::Run(std::shared_ptr<RunPoint> from,
                                    std::span<const OrderEdge> edges) {
  solver::Run run(std::move(from), edges, words_);
  const uint64_t before = run.process().retired_total();
  uint64_t next_point = before + options_.point_insns;
  uint64_t next_look = before + kLookInsns;
  std::optional<RunOutcome::End> end;
  bool all_ended = false;
  follower::Contradiction contradiction;
  while (!end) {
    CLEW_ASSIGN_OR_RETURN(choice, run.Choose());
    if (!choice) {
      CLEW_ASSIGN_OR_RETURN(none_left, run.process().AllEnded());
      all_ended = none_left;
      if (!all_ended) {
        end = RunOutcome::End::kStuck;
        if (run.process().thread_count() == 1) {
          contradiction = run.NobodyGoesOn();
        }
        break;
      }
      CLEW_ASSIGN_OR_RETURN(differs,
                            follower::CheckFailure(run.process(), failure_));
      end =
          differs ? RunOutcome::End::kContradiction : RunOutcome::End::kWitness;
      contradiction = differs.value_or(follower::Contradiction());
      break;
    }
    CLEW_ASSIGN_OR_RETURN(advance, run.Step(*choice));
    if (advance.stop == follower::Advance::Stop::kContradiction) {
      end = RunOutcome::End::kContradiction;
      contradiction = run.process().contradiction();
    }
    CLEW_CHECK(end || advance.insns_retired > 0,
               "thread {} was chosen and does not go on", choice->thread);
    const uint64_t retired = run.process().retired_total();
    if (!end && retired - before >= options_.insns_max) {
      end = RunOutcome::End::kCutOff;
    }
    if (!end && retired >= next_point) {
      run.SetPoint();
      run.ThinPoints();
      run.ForgetBefore(options_.keep_insns);
      next_point = retired + options_.point_insns;
    }
    if (!end && retired >= next_look) {
      next_look = retired + kLookInsns;
      if (std::chrono::steady_clock::now() >= options_.deadline) {
        end = RunOutcome::End::kCutOff;
      }
      if (progress_ != nullptr) {
        progress_->Update(retired, 0);
      }
    }
  }
  insns_run_ += run.process().retired_total() - before;
  return run.Finish(*end, std::move(contradiction), all_ended);
}

LearnReport LearnAlongPaths(const RunPoint& from, uint64_t insns_max,
                            const Failure& failure, WordTable& words,
                            ProgressSink* progress,
                            std::chrono::steady_clock::time_point deadline) {
  LearnReport report;
  GuessRunOptions options;
  options.insns_max = insns_max;
  options.deadline = deadline;
  options.point_insns = std::numeric_limits<uint64_t>::max() / 2;  // none
  for (int pass = 0; pass < 2; ++pass) {
    auto forced =
        std::make_shared<RunPoint>(RunPoint{.process = from.process.Forced(),
                                            .rules = from.rules,
                                            .guess = from.guess,
                                            .history = nullptr,
                                            .previous = nullptr});
    GuessRunner runner(failure, &words, options, progress);
    const auto outcome = runner.Run(std::move(forced));
    report.insns_run += runner.insns_run();
    report.to_the_end = outcome && outcome->all_ended;
  }
  return report;
}

std::vector<ScheduleStep> CollectSteps(const RunPoint& last,
                                       const std::vector<ScheduleStep>& steps) {
  std::vector<const std::vector<ScheduleStep>*> parts = {&steps};
  for (const RunHistory* part = last.history.get(); part != nullptr;
       part = part->previous.get()) {
    parts.push_back(&part->steps);
  }
  std::vector<ScheduleStep> all;
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    for (const ScheduleStep& step : **part) {
      AppendRun(all, step.thread, step.until_insn);
    }
  }
  return all;
}

}  // namespace clew::solver
