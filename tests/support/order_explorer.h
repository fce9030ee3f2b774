#ifndef CLEW_TESTS_SUPPORT_ORDER_EXPLORER_H_
#define CLEW_TESTS_SUPPORT_ORDER_EXPLORER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "follower/recording.h"
#include "solver/search/guess_run.h"
#include "solver/search/machine_executor.h"
#include "solver/search/word_table.h"

namespace clew::test {

// Every order of a recording that the search's executor permits; each state
// once. Takes at once what the executor says is no choice, as the engines do.
// `recording` is borrowed.
class OrderExplorer {
 public:
  explicit OrderExplorer(const follower::Recording& recording)
      : session_(follower::OpenedRecording::Open(recording).value()),
        words_(session_->start().thread_count(), recording.clock_slack_ticks),
        cuts_(session_->start().thread_count()) {
    const follower::Process plain = session_->start().SequentiallyConsistent();
    solver::LearnAlongPaths(*solver::FirstPoint(plain, 0, {}), ~uint64_t{0},
                            recording.failure, words_, nullptr);
    for (uint64_t known = ~uint64_t{0}; known != words_.learned();) {
      known = words_.learned();
      visited_.clear();
      ends_.clear();
      executor_ = std::make_unique<solver::MachineExecutor>(
          session_->start(), recording.failure, recording.clock_slack_ticks,
          words_, cuts_, follower::GuessOptions{});
      origin_ = executor_->SetMark();
      Explore();
    }
  }

  // The orders that reach different ends, by the digest of the end.
  const std::map<uint64_t, constraints::StepOrder>& ends() const {
    return ends_;
  }
  size_t states() const { return visited_.size(); }
  std::vector<ScheduleStep> ScheduleOf(const constraints::StepOrder& order) {
    executor_->RollBack(origin_);
    return executor_->ScheduleOf(order);
  }

 private:
  void Explore() {
    if (!visited_.insert(executor_->StateDigest()).second) {
      return;
    }
    bool all_finished = true;
    std::vector<uint32_t> choices;
    for (uint32_t actor = 0; actor < executor_->actor_count(); ++actor) {
      const bool finished = executor_->Finished(actor);
      all_finished &= finished;
      if (finished || !executor_->Enabled(actor)) {
        continue;
      }
      if (!executor_->Next(actor).contested) {
        choices = {actor};
        break;
      }
      choices.push_back(actor);
    }
    for (const uint32_t actor : choices) {
      const auto mark = executor_->SetMark();
      if (executor_->Step(actor) != constraints::StepResult::kContradiction) {
        order_.push_back(actor);
        Explore();
        order_.pop_back();
      }
      executor_->RollBack(mark);
    }
    if (choices.empty() && all_finished && executor_->EndViolations() == 0) {
      ends_.emplace(executor_->StateDigest(), order_);
    }
  }

  std::unique_ptr<follower::OpenedRecording> session_;
  solver::WordTable words_;
  solver::Cuts cuts_;
  std::unique_ptr<solver::MachineExecutor> executor_;
  constraints::Executor::Mark origin_ = 0;
  constraints::StepOrder order_;
  std::set<uint64_t> visited_;
  std::map<uint64_t, constraints::StepOrder> ends_;
};

}  // namespace clew::test

#endif  // CLEW_TESTS_SUPPORT_ORDER_EXPLORER_H_
