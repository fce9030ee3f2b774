#include "symbolic/guided_run.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "common/check.h"
#include "symbolic/access_watcher.h"

namespace clew::symbolic {
namespace {

// Opens delay gates, and remembers which shared words a step touched.
class Watcher final : public AccessWatcher {
 public:
  Watcher(const process::Process& process, WordTable& words,
          std::vector<DelayGate>& gates)
      : AccessWatcher(process, words), gates_(gates) {}

  void BeginStep(size_t thread) {
    set_thread(thread);
    reads_.clear();
    writes_.clear();
  }
  // Shared words that the step read and wrote.
  const std::vector<uint64_t>& reads() const { return reads_; }
  const std::vector<uint64_t>& writes() const { return writes_; }

  std::vector<OrderEdge> TakeOpened() { return std::exchange(opened_, {}); }

 private:
  bool OnWord(const WordAccess& access) override {
    if (!words().IsShared(access.word)) {
      return false;
    }
    if (Reads(access.kind)) {
      reads_.push_back(access.word);
    }
    if (Writes(access.kind)) {
      writes_.push_back(access.word);
    }
    return Writes(access.kind) && OpenGates(access);
  }

  // A gate opens for a write by another thread while the held one waits there.
  bool OpenGates(const WordAccess& write) {
    bool any = false;
    std::erase_if(gates_, [&](const DelayGate& gate) {
      const bool opens =
          gate.word == write.word && gate.held.thread != write.at.thread &&
          process().thread(gate.held.thread).retired == gate.held.insn;
      if (opens) {
        opened_.push_back({.before = write.at, .after = gate.held});
        any = true;
      }
      return opens;
    });
    return any;
  }

  std::vector<DelayGate>& gates_;
  std::vector<OrderEdge> opened_;
  std::vector<uint64_t> reads_;
  std::vector<uint64_t> writes_;
};

// One run: the state that changes, and the choice of who goes next.
class Run {
 public:
  Run(std::shared_ptr<RunPoint> from, const Decisions& decisions,
      WordTable* words)
      : process_(from->process),
        rules_(from->rules),
        guess_(from->guess),
        edges_(decisions.edges),
        gates_(decisions.gates),
        last_(std::move(from)),
        words_(words),
        held_(process_.thread_count()) {
    if (words != nullptr) {
      watcher_.emplace(process_, *words, gates_);
      process_.set_observer(&*watcher_);
    }
    DropPast();
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  struct Choice {
    size_t thread = 0;
    uint64_t until_insn = 0;
  };

  // The enabled thread that is earliest in the guess; nullopt: none.
  Result<std::optional<Choice>> Choose() {
    std::optional<Choice> best;
    double best_key = 0;
    for (size_t thread = 0; thread < process_.thread_count(); ++thread) {
      CLEW_ASSIGN_OR_RETURN(can_run, process_.CanRun(thread));
      const uint64_t limit = LimitOf(thread);
      if (!can_run || held_[thread] ||
          limit <= process_.thread(thread).retired) {
        continue;
      }
      CLEW_ASSIGN_OR_RETURN(key, guess_.KeyOf(process_, thread));
      if (best && key >= best_key) {
        continue;
      }
      CLEW_ASSIGN_OR_RETURN(permitted, rules_.Permits(process_, thread));
      if (permitted) {
        CLEW_ASSIGN_OR_RETURN(end, guess_.GrainEnd(process_, thread));
        best =
            Choice{.thread = thread,
                   .until_insn = std::min({limit, end, NextContested(thread)})};
        best_key = key;
      }
    }
    return best;
  }

  Result<process::Advance> Step(const Choice& choice) {
    if (!watcher_) {
      CLEW_ASSIGN_OR_RETURN(advance,
                            process_.Run(choice.thread, choice.until_insn));
      NoteStep(choice.thread);
      return advance;
    }
    watcher_->BeginStep(choice.thread);
    const process::Process::Mark mark = process_.SetMark();
    CLEW_ASSIGN_OR_RETURN(advance,
                          process_.Run(choice.thread, choice.until_insn));
    const bool take_back =
        advance.stop == process::Advance::Stop::kContradiction &&
        !watcher_->reads().empty();
    if (take_back) {
      const process::Contradiction why = process_.contradiction();
      process_.RollBack(mark);
      held_[choice.thread] =
          Held{.words = watcher_->reads(), .contradiction = why};
      advance = {};
      watcher_->TakeOpened();
    } else {
      NoteStep(choice.thread);
      Release(choice.thread);
      for (const OrderEdge& edge : watcher_->TakeOpened()) {
        found_.push_back(edge);
        edges_.push_back(edge);
      }
    }
    process_.DropMarks();
    return advance;
  }

  bool AnyHeld() const {
    return std::ranges::any_of(
        held_, [](const auto& held) { return held.has_value(); });
  }

  // Everybody's stream is over.
  Result<bool> AllEnded() const {
    for (size_t thread = 0; thread < process_.thread_count(); ++thread) {
      CLEW_ASSIGN_OR_RETURN(block, process_.NextBlock(thread));
      if (block != nullptr) {
        return false;
      }
    }
    return true;
  }

  void SetPoint() {
    auto point = std::make_shared<RunPoint>(RunPoint{
        .process = process_,
        .rules = rules_,
        .guess = guess_,
        .history = std::make_shared<RunHistory>(RunHistory{
            .steps = std::exchange(steps_, {}), .previous = last_->history}),
        .previous = last_});
    point->process.set_observer(nullptr);
    last_ = std::move(point);
    DropPast();
  }

  // Keeps `count` points and the tape from the oldest of them on.
  void ForgetBefore(uint64_t count) {
    RunPoint* oldest = last_.get();
    for (; count > 1 && oldest->previous != nullptr; --count) {
      oldest = oldest->previous.get();
    }
    oldest->previous.reset();
    for (size_t i = 0; i < process_.thread_count(); ++i) {
      const process::ThreadState& state = oldest->process.thread(i);
      process_.tape().Forget(i, state.block, state.input);
    }
  }

  RunOutcome Finish(RunOutcome::End end) {
    RunOutcome outcome;
    outcome.end = end;
    outcome.contradiction = process_.contradiction();
    for (const auto& held : held_) {
      if (held) {
        outcome.held_back.push_back(held->contradiction);
      }
    }
    if (end == RunOutcome::End::kContradiction && !outcome.held_back.empty()) {
      outcome.contradiction = outcome.held_back.front();
    }
    outcome.last = last_;
    outcome.steps = std::move(steps_);
    outcome.retired_total = process_.retired_total();
    for (size_t i = 0; i < process_.thread_count(); ++i) {
      outcome.retired.push_back(process_.thread(i).retired);
    }
    outcome.found_edges = std::move(found_);
    return outcome;
  }

  process::Process& process() { return process_; }

 private:
  // A thread whose next step contradicts the evidence as things stand.
  struct Held {
    std::vector<uint64_t> words;  // shared ones that the step read
    process::Contradiction contradiction;
  };

  uint64_t NextContested(size_t thread) const {
    return words_ == nullptr
               ? std::numeric_limits<uint64_t>::max()
               : words_->NextContested(static_cast<uint32_t>(thread),
                                       process_.thread(thread).retired + 1);
  }
  // Threads that read what the last step has written may try again.
  void Release(size_t writer) {
    for (size_t thread = 0; thread < held_.size(); ++thread) {
      auto& held = held_[thread];
      if (thread != writer && held &&
          std::ranges::find_first_of(held->words, watcher_->writes()) !=
              held->words.end()) {
        held.reset();
      }
    }
  }
  bool Satisfied(const OrderEdge& edge) const {
    return process_.thread(edge.before.thread).retired > edge.before.insn;
  }
  bool Past(const InsnRef& ref) const {
    return process_.thread(ref.thread).retired > ref.insn;
  }
  // Decisions that can have no effect any more.
  void DropPast() {
    std::erase_if(edges_, [this](const OrderEdge& edge) {
      return Satisfied(edge) || Past(edge.after);
    });
    std::erase_if(gates_,
                  [this](const DelayGate& gate) { return Past(gate.held); });
  }
  uint64_t LimitOf(size_t thread) const {
    uint64_t limit = std::numeric_limits<uint64_t>::max();
    for (const OrderEdge& edge : edges_) {
      if (edge.after.thread == thread && !Past(edge.after) &&
          !Satisfied(edge)) {
        limit = std::min(limit, edge.after.insn);
      }
    }
    for (const DelayGate& gate : gates_) {
      if (gate.held.thread == thread && !Past(gate.held)) {
        limit = std::min(limit, gate.held.insn);
      }
    }
    return limit;
  }
  void NoteStep(size_t thread) {
    const uint64_t retired = process_.thread(thread).retired;
    const Tid tid = process_.tid(thread);
    if (retired == 0) {
      return;
    }
    if (!steps_.empty() && steps_.back().thread == tid) {
      steps_.back().until_insn = retired;
    } else {
      steps_.push_back({.kind = ScheduleStep::Kind::kRun,
                        .thread = tid,
                        .until_insn = retired});
    }
  }

  process::Process process_;
  OrderRules rules_;
  Guess guess_;
  std::vector<OrderEdge> edges_;
  std::vector<DelayGate> gates_;
  std::shared_ptr<RunPoint> last_;
  std::vector<ScheduleStep> steps_;
  std::vector<OrderEdge> found_;
  WordTable* words_;
  std::vector<std::optional<Held>> held_;  // by thread
  std::optional<Watcher> watcher_;
};

}  // namespace

GuidedRunner::GuidedRunner(const Failure& failure, WordTable* words,
                           GuidedRunOptions options, ProgressSink* progress)
    : failure_(failure),
      words_(words),
      options_(options),
      progress_(progress) {}

Result<RunOutcome> GuidedRunner::Run(std::shared_ptr<RunPoint> from,
                                     const Decisions& decisions) {
  symbolic::Run run(std::move(from), decisions, words_);
  const uint64_t before = run.process().retired_total();
  uint64_t interval = options_.point_insns;
  uint64_t next_point = before + interval;
  uint64_t points = 0;
  std::optional<RunOutcome::End> end;
  bool forgot = false;
  while (!end) {
    CLEW_ASSIGN_OR_RETURN(choice, run.Choose());
    if (!choice) {
      CLEW_ASSIGN_OR_RETURN(all_ended, run.AllEnded());
      if (!all_ended) {
        end = run.AnyHeld() ? RunOutcome::End::kContradiction
                            : RunOutcome::End::kStuck;
        break;
      }
      CLEW_ASSIGN_OR_RETURN(differs, run.process().CheckFailure(failure_));
      end =
          differs ? RunOutcome::End::kContradiction : RunOutcome::End::kWitness;
      break;
    }
    CLEW_ASSIGN_OR_RETURN(advance, run.Step(*choice));
    if (advance.stop == process::Advance::Stop::kContradiction) {
      end = RunOutcome::End::kContradiction;
    }
    CLEW_CHECK(end || run.AnyHeld() || advance.insns_retired > 0,
               "thread {} was chosen and does not go on", choice->thread);
    const uint64_t retired = run.process().retired_total();
    if (!end && retired - before >= options_.insns_max) {
      end = RunOutcome::End::kCutOff;
    }
    if (!end && retired >= next_point) {
      run.SetPoint();
      if (retired >
          options_.forget_before_insns * (words_ == nullptr ? 1 : 4)) {
        run.ForgetBefore(options_.points_kept);
        forgot = true;
      }
      if (++points % options_.points_max == 0) {
        interval *= 2;
      }
      next_point = retired + interval;
      if (progress_ != nullptr) {
        progress_->Update(insns_run_ + retired - before, 0);
      }
    }
  }
  insns_run_ += run.process().retired_total() - before;
  RunOutcome outcome = run.Finish(*end);
  outcome.forgot = forgot;
  return outcome;
}

std::vector<ScheduleStep> CollectSteps(const RunOutcome& outcome) {
  std::vector<const std::vector<ScheduleStep>*> parts = {&outcome.steps};
  for (const RunHistory* part = outcome.last->history.get(); part != nullptr;
       part = part->previous.get()) {
    parts.push_back(&part->steps);
  }
  std::vector<ScheduleStep> steps;
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    for (const ScheduleStep& step : **part) {
      if (!steps.empty() && steps.back().thread == step.thread) {
        steps.back() = step;
      } else {
        steps.push_back(step);
      }
    }
  }
  return steps;
}

}  // namespace clew::symbolic
