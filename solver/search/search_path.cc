#include "solver/search/search_path.h"

#include <algorithm>

namespace clew::solver {

using constraints::Executor;
using constraints::NextStep;
using constraints::StepResult;

void SearchStats::Add(const SearchStats& other) {
  nodes += other.nodes;
  steps += other.steps;
  contradictions += other.contradictions;
  back_jumps += other.back_jumps;
  states_remembered = std::max(states_remembered, other.states_remembered);
  deepest = std::max(deepest, other.deepest);
  seconds += other.seconds;
}

SearchPath::SearchPath(Executor& executor)
    : executor_(executor), positions_(executor.actor_count()) {}

StepResult SearchPath::Step(uint32_t thread, uint32_t frame) {
  const NextStep next = executor_.Next(thread);
  ++stats_.steps;
  contradicted_ = false;
  const StepResult result = executor_.Step(thread);
  if (result == StepResult::kContradiction) {
    NoteContradiction();
  } else if (result != StepResult::kBlocked) {
    positions_[thread].push_back(log_.size());
    log_.push_back({thread, frame, Reads(next.kind), Writes(next.kind),
                    next.word.has_value(),
                    next.word.value_or(TraceeAddr()).as_int(),
                    next.size_bytes});
    stats_.deepest = std::max<uint64_t>(stats_.deepest, log_.size());
  }
  return result;
}

void SearchPath::NoteContradiction() {
  ++stats_.contradictions;
  contradicted_ = true;
  if (log_.size() > deepest_contradiction_at_ || deepest_text_.empty()) {
    deepest_contradiction_at_ = log_.size();
    deepest_text_ = executor_.last_contradiction().text;
  }
}

// False on a contradiction.
bool SearchPath::RunEagerly(uint32_t thread, uint32_t frame, bool& progress) {
  while (!executor_.Finished(thread) && executor_.Enabled(thread) &&
         !executor_.Next(thread).contested) {
    const StepResult result = Step(thread, frame);
    if (result == StepResult::kContradiction) {
      return false;
    }
    if (result == StepResult::kBlocked) {
      return true;
    }
    progress = true;
  }
  return true;
}

SearchPath::Outcome SearchPath::Advance(uint32_t frame) {
  contradicted_ = false;
  for (bool progress = true; progress;) {
    progress = false;
    for (uint32_t t = 0; t < executor_.actor_count(); ++t) {
      if (!RunEagerly(t, frame, progress)) {
        return Outcome::kDead;
      }
    }
  }
  return AtRest();
}

SearchPath::Outcome SearchPath::AtRest() {
  bool all_finished = true;
  for (uint32_t t = 0; t < executor_.actor_count(); ++t) {
    if (executor_.Enabled(t)) {
      return Outcome::kChoice;
    }
    all_finished &= executor_.Finished(t);
  }
  if (!all_finished) {
    return Outcome::kDead;
  }
  if (executor_.EndViolations() == 0) {
    return Outcome::kWitness;
  }
  NoteContradiction();
  return Outcome::kDead;
}

SearchPath::Mark SearchPath::SetMark() {
  return {executor_.SetMark(), log_.size()};
}

void SearchPath::RollBack(const Mark& mark) {
  executor_.RollBack(mark.executor);
  while (log_.size() > mark.steps) {
    positions_[log_.back().thread].pop_back();
    log_.pop_back();
  }
}

size_t SearchPath::PositionOf(uint32_t thread, uint64_t step) const {
  return thread < positions_.size() && step < positions_[thread].size()
             ? positions_[thread][static_cast<size_t>(step)]
             : log_.size();
}

size_t SearchPath::LastForeignWrite(uint32_t thread, uint64_t word,
                                    uint32_t size_bytes,
                                    size_t position) const {
  for (size_t i = std::min(position, log_.size()); i-- > 0;) {
    const Entry& entry = log_[i];
    if (entry.writes && entry.thread != thread && entry.has_word &&
        entry.word < word + size_bytes &&
        word < entry.word + entry.size_bytes) {
      return i;
    }
  }
  return log_.size();
}

constraints::StepOrder SearchPath::Order() const {
  constraints::StepOrder order;
  order.reserve(log_.size());
  for (const Entry& entry : log_) {
    order.push_back(entry.thread);
  }
  return order;
}

}  // namespace clew::solver
