#include "solver/search/conflict_search.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include "common/check.h"
#include "common/digest.h"
#include "follower/earliest.h"
#include "follower/failure_check.h"

namespace clew::solver {

using follower::Advance;
using End = ConflictSearchReport::End;

namespace {

// What is contested is known only so far ahead.
constexpr uint64_t kStepInsnsMax = 1'000;
// Bound what a dead end is tried against: held threads of a merged conflict
// set, and decisions at one node. More miss fewer orders and cost more.
constexpr size_t kHeldInConflictMax = 4;
constexpr size_t kDecisionsMax = 12;
// Of the path before a contradiction, in which bursts are split for it.
constexpr size_t kSplitSteps = 24;
// Between two steps of a path, in ticks of the guess.
constexpr double kKeyStep = 1.0 / 1024;

// Drops elements of a shared list, in a copy of its own.
template <class T, class Drop>
void DropIf(std::shared_ptr<const std::vector<T>>& list, Drop drop) {
  if (std::ranges::any_of(*list, drop)) {
    auto rest = std::make_shared<std::vector<T>>(*list);
    std::erase_if(*rest, drop);
    list = std::move(rest);
  }
}

}  // namespace

ConflictSearch::ConflictSearch(const follower::Process& start,
                               const follower::OrderRules& rules,
                               const follower::Guess& guess,
                               const Failure& failure, WordTable& words,
                               const ConflictSearchOptions& options)
    : AccessWatcher(process_, words),
      failure_(failure),
      table_(words),
      options_(options),
      process_(start),
      rules_(rules),
      guess_(guess),
      nodes_of_(start.thread_count()),
      taken_(start.thread_count()),
      bursts_(start.thread_count(), words, options.burst_gap_insns),
      held_(std::make_shared<std::vector<Held>>()),
      decisions_(std::make_shared<std::vector<Decision>>()) {
  process_.mutable_memory().EnableRelativeDigest();
}

void ConflictSearch::Conflict::Add(const Conflict& other) {
  words.Add(other.words);
  for (const Held& thread : other.held) {
    const auto same = [&thread](const Held& h) { return h.at == thread.at; };
    if (held.size() < kHeldInConflictMax && std::ranges::none_of(held, same)) {
      held.push_back(thread);
    }
  }
}

void ConflictSearch::OnSharedWord(const WordAccess& access) {
  accesses_.push_back(access);
}

Result<ConflictSearchReport> ConflictSearch::Run(Clock::time_point deadline) {
  deadline_ = deadline;
  process_.set_observer(this);
  while (true) {
    if (OutOfBudget()) {
      report_.end = AtLimit() ? End::kLimit : End::kDeadline;
      break;
    }
    const uint64_t retired = process_.retired_total();
    if (retired >= options_.goal_retired && held_->empty()) {
      report_.end = End::kReached;
      break;
    }
    CLEW_ASSIGN_OR_RETURN(outcome, GoOn());
    if (outcome == Outcome::kWitness || outcome == Outcome::kNothing) {
      report_.end =
          outcome == Outcome::kWitness ? End::kWitness : End::kRefuted;
      break;
    }
  }
  process_.set_observer(nullptr);
  return report_;
}

// Goes one step further, or back to where another one can be tried.
Result<ConflictSearch::Outcome> ConflictSearch::GoOn() {
  // Dead states are hardly ever beyond the furthest contradiction, and a digest
  // costs time. One that is missed is only refuted once more.
  if (process_.retired_total() < report_.furthest_retired) {
    const auto dead = dead_.find(DigestNow());
    if (dead != dead_.end()) {
      return GoBack(dead->second);
    }
  }
  Node node;
  node.mark = process_.SetMark();
  node.progress = rules_.progress();
  node.held = held_;
  node.decisions = decisions_;
  node.accesses = accesses_.size();
  CLEW_ASSIGN_OR_RETURN(outcome, TryFrom(node));
  if (outcome == Outcome::kNothing) {
    return GoBack(WhyNot(node));
  }
  if (outcome == Outcome::kWentOn) {
    Push(std::move(node));
  }
  return outcome;
}

void ConflictSearch::Push(Node node) {
  taken_[node.thread][node.retired] = node.key;
  nodes_of_[node.thread].push_back(nodes_.size());
  nodes_.push_back(std::move(node));
}

// Takes the first step from the node's state that does not contradict. Ends, as
// each step that does adds its thread to the held ones, which Pick leaves out.
Result<ConflictSearch::Outcome> ConflictSearch::TryFrom(Node& node) {
  while (true) {
    CLEW_ASSIGN_OR_RETURN(thread, Pick(node));
    if (!thread) {
      CLEW_ASSIGN_OR_RETURN(at_end, IsAtEnd(node));
      return at_end ? Outcome::kWitness : Outcome::kNothing;
    }
    CLEW_ASSIGN_OR_RETURN(end, Step(node, *thread));
    if (end == StepEnd::kDone) {
      return Outcome::kWentOn;
    }
    if (end == StepEnd::kUnwound) {
      return Outcome::kUnwound;
    }
    if (overtaken_) {
      return Outcome::kNothing;
    }
  }
}

// The earliest thread in the guess that may go on and was not tried.
Result<std::optional<uint32_t>> ConflictSearch::Pick(const Node& node) {
  CLEW_ASSIGN_OR_RETURN(
      earliest,
      follower::FindEarliest(
          process_, rules_,
          [&](size_t t) {
            const auto thread = static_cast<uint32_t>(t);
            return !MustWait(thread) &&
                   std::ranges::find(node.tried, thread) == node.tried.end();
          },
          [this](size_t t) { return KeyOf(static_cast<uint32_t>(t)); }));
  return earliest ? std::optional(static_cast<uint32_t>(earliest->thread))
                  : std::nullopt;
}

Result<double> ConflictSearch::KeyOf(uint32_t thread) {
  if (options_.keeps_order) {
    const auto last = taken_[thread].find(process_.thread(thread).retired);
    if (last != taken_[thread].end()) {
      return last->second;
    }
  }
  CLEW_ASSIGN_OR_RETURN(key, guess_.KeyOf(process_, thread));
  if (options_.jitter_ticks == 0) {
    return key;
  }
  const uint64_t place =
      process_.thread(thread).retired / options_.jitter_insns * 64 + thread;
  return key + static_cast<double>(MixBits(options_.seed ^ MixBits(place)) %
                                   options_.jitter_ticks);
}

Result<ConflictSearch::StepEnd> ConflictSearch::Step(Node& node,
                                                     uint32_t thread) {
  ++report_.steps;
  node.thread = thread;
  node.retired = process_.thread(thread).retired;
  node.retired_total = process_.retired_total();
  // Keys grow along a path, also where it leaves the guess: with keeps_order
  // they repeat this order, and not the guess's.
  CLEW_ASSIGN_OR_RETURN(key, guess_.KeyOf(process_, thread));
  node.key = nodes_.empty() ? key : std::max(key, nodes_.back().key + kKeyStep);
  set_thread(thread);
  const follower::ThreadState& state = process_.thread(thread);
  if (state.wait.word() != 0) {  // whose wake it was is a choice, too
    accesses_.push_back({.at = {thread, state.retired},
                         .word = WordOf(state.wait.word()),
                         .kind = AccessKind::kReadModifyWrite,
                         .lo_tick = 0,
                         .hi_tick = 0});
  }
  CLEW_ASSIGN_OR_RETURN(end, RunStep(thread));
  if (end == StepEnd::kHeld) {
    const InsnRef why = {thread, process_.contradiction().insn_index};
    Hold(node, thread);
    return SplitBurstsFor(why) ? StepEnd::kUnwound : StepEnd::kHeld;
  }
  Release(thread, node.accesses);
  Conclude(thread, node.accesses);
  return end;
}

// Through the next contested instruction and on to the one after, as long as
// time permits. Returns kHeld at a contradiction.
Result<ConflictSearch::StepEnd> ConflictSearch::RunStep(uint32_t thread) {
  const follower::ThreadState& state = process_.thread(thread);
  const uint64_t next = bursts_.EndOf(thread, state.retired, kStepInsnsMax);
  while (state.retired < next) {
    CLEW_ASSIGN_OR_RETURN(group_end, guess_.GroupEnd(process_, thread));
    CLEW_ASSIGN_OR_RETURN(advance,
                          process_.Run(thread, std::min(next, group_end)));
    if (advance.stop == Advance::Stop::kContradiction) {
      return StepEnd::kHeld;
    }
    if (advance.stop != Advance::Stop::kReached) {
      break;
    }
    CLEW_ASSIGN_OR_RETURN(can_run, process_.CanRun(thread));
    if (!can_run) {
      break;
    }
    CLEW_ASSIGN_OR_RETURN(permitted, rules_.Permits(process_, thread));
    if (!permitted) {
      break;
    }
  }
  return StepEnd::kDone;
}

// Takes the step back and holds its thread. What it read is collected before
// Restore, which cuts the log of accesses; the steps before join the set behind
// it, when the log ends with them again. The node remembers that the thread is
// held, so that this survives a return to it.
void ConflictSearch::Hold(Node& node, uint32_t thread) {
  ++report_.contradictions;
  const follower::Contradiction& why = process_.contradiction();
  Held held = {.at = {thread, node.retired}, .words = {}, .conflict_words = {}};
  for (size_t i = node.accesses; i < accesses_.size(); ++i) {
    if (Reads(accesses_[i].kind)) {
      held.words.Add(accesses_[i].word);
    }
  }
  NoteFurthest(why);
  held.conflict_words = held.words;
  Restore(node);
  AddReadsOf(thread, held.conflict_words);
  if (WordSet words = Overtaken(held); !words.empty()) {
    overtaken_ = Conflict{.words = std::move(words), .held = {held}};
  }
  auto threads = std::make_shared<std::vector<Held>>(*held_);
  threads->push_back(std::move(held));
  held_ = std::move(threads);
  node.held = held_;
}

// Returns whether bursts were split for the contradiction, which is then a step
// of shorter ones away.
bool ConflictSearch::SplitBurstsFor(InsnRef why) {
  if (process_.tid(why.thread) != report_.furthest.tid ||
      why.insn != report_.furthest.insn_index) {
    return false;
  }
  const SplitBursts whose = bursts_.NoteContradiction(why);
  if (whose == SplitBursts::kNone) {
    return false;
  }
  const auto split = [&](uint32_t thread, uint64_t begin, uint64_t end) {
    const bool own = thread == why.thread;
    if (whose == SplitBursts::kAll || (whose == SplitBursts::kOwn) == own) {
      bursts_.Split(why, thread, begin, end);
    }
  };
  const size_t first = nodes_.size() - std::min(nodes_.size(), kSplitSteps);
  for (size_t i = first; i < nodes_.size(); ++i) {
    split(nodes_[i].thread, nodes_[i].retired, EndOfStep(i));
  }
  split(why.thread, process_.thread(why.thread).retired, why.insn);
  UnwindTo(first);
  DropIf(held_, [this](const Held& held) { return bursts_.IsSplit(held.at); });
  dead_.clear();
  overtaken_.reset();
  return true;
}

void ConflictSearch::UnwindTo(size_t node) {
  while (nodes_.size() > node) {
    nodes_of_[nodes_.back().thread].pop_back();
    Restore(nodes_.back());
    nodes_.pop_back();
  }
}

// Where the thread of that step on the path stands behind it.
uint64_t ConflictSearch::EndOfStep(size_t node) const {
  const uint32_t thread = nodes_[node].thread;
  const auto& own = nodes_of_[thread];
  const auto next = std::ranges::upper_bound(own, node);
  return next == own.end() ? process_.thread(thread).retired
                           : nodes_[*next].retired;
}

void ConflictSearch::NoteFurthest(const follower::Contradiction& why) {
  if (process_.retired_total() < report_.furthest_retired) {
    return;
  }
  const bool same = why.tid == report_.furthest.tid &&
                    why.insn_index == report_.furthest.insn_index;
  furthest_since_steps_ = same ? furthest_since_steps_ : report_.steps;
  report_.furthest_retired = process_.retired_total();
  report_.furthest = why;
}

// Words that the step which contradicts reads, that the thread's step before
// read, too, and that others have written in between, as where a load and its
// compare-and-exchange are torn apart. No later write makes the two agree.
WordSet ConflictSearch::Overtaken(const Held& held) const {
  WordSet words;
  const auto& own = nodes_of_[held.at.thread];
  if (own.empty()) {
    return words;
  }
  const auto [begin, end] = AccessesOf(own.back());
  for (size_t at = begin; at < end; ++at) {
    const WordAccess& access = accesses_[at];
    if (access.kind == AccessKind::kRead && held.words.Contains(access.word) &&
        WroteWord(end, access.word)) {
      words.Add(access.word);
    }
  }
  return words;
}

// Threads that read what the step has written may try again.
void ConflictSearch::Release(uint32_t writer, size_t accesses) {
  DropIf(held_, [&](const Held& held) {
    return held.at.thread != writer && Wrote(accesses, held.words);
  });
}

// To the node's state. Its step is not in nodes_of_ any more.
void ConflictSearch::Restore(Node& node) {
  process_.RollBack(node.mark);
  rules_.set_progress(node.progress);
  held_ = node.held;
  decisions_ = node.decisions;
  accesses_.resize(node.accesses);
}

// Drops decisions that the step has fulfilled. Nodes before keep the list they
// had: lists are shared and never changed in place.
void ConflictSearch::Conclude(uint32_t writer, size_t accesses) {
  DropIf(decisions_, [&](const Decision& decision) {
    if (decision.first.thread != decision.waits.thread) {
      return process_.thread(decision.first.thread).retired >
             decision.first.insn;
    }
    return decision.waits.thread != writer && Wrote(accesses, decision.words);
  });
}

// Decisions are part of the state: they forbid steps, so that the same memory
// may be dead with them and alive without. A sum, as their order means nothing.
uint64_t ConflictSearch::DigestNow() const {
  uint64_t digest = process_.StateDigest();
  for (const Decision& decision : *decisions_) {
    digest +=
        MixBits(MixBits(decision.waits.insn * 64 + decision.waits.thread) +
                MixBits(decision.first.insn * 64 + decision.first.thread));
  }
  return digest;
}

void ConflictSearch::Remember(const Conflict& conflict) {
  dead_.emplace(DigestNow(), conflict);
}

// Unwinds to the last step that touched a word of the conflict set, or that a
// decision led to which still keeps a thread waiting, and tries otherwise
// there. Returns kNothing if there is no such step.
Result<ConflictSearch::Outcome> ConflictSearch::GoBack(Conflict conflict) {
  bool jumped = false;
  // Not interrupted by the deadline: the conflict set would be lost.
  while (!nodes_.empty()) {
    if (AtLimit()) {
      return Outcome::kWentOn;
    }
    const bool waits = std::ranges::any_of(*decisions_, [&](const auto& d) {
      return d.node == nodes_.size() - 1;
    });
    Node node = std::move(nodes_.back());
    nodes_.pop_back();
    nodes_of_[node.thread].pop_back();
    const bool touches = Touches(node, conflict.words);
    if (!touches && !(waits && node.decided)) {
      // Its step touched nothing that is to blame: whenever it is taken, the
      // held threads read the same.
      Restore(node);
      jumped = true;
      Remember(conflict);
      continue;
    }
    report_.back_jumps += std::exchange(jumped, false) ? 1 : 0;
    node.conflict.Add(conflict);
    if (touches) {
      if (!options_.plain_alternatives) {
        Decide(node, conflict);
      }
      // If all else fails here, too, this step is part of why: its words join
      // the conflict set, so that no jump passes over what led to it.
      for (size_t i = node.accesses; i < accesses_.size(); ++i) {
        if (table_.IsContestedWord(accesses_[i].word)) {
          node.conflict.words.Add(accesses_[i].word);
        }
      }
      AddReadsOf(node.thread, node.conflict.words);
    }
    Restore(node);
    if (!node.decided) {
      node.tried.push_back(node.thread);
    }
    CLEW_ASSIGN_OR_RETURN(outcome, TryOtherwise(node));
    if (outcome == Outcome::kWentOn) {
      Push(std::move(node));
      return outcome;
    }
    if (outcome != Outcome::kNothing) {
      return outcome;
    }
    conflict = WhyNot(node);
  }
  return Outcome::kNothing;
}

// The step of the node's thread may have come too early for a held thread,
// which is then to go first; or the held thread is the same, and is to wait
// there for another's write.
void ConflictSearch::Decide(Node& node, const Conflict& conflict) {
  const InsnRef step = {node.thread, node.retired};
  for (const Held& held : conflict.held) {
    const bool possible = held.at.thread == step.thread
                              ? held.at.insn >= step.insn
                              : Wrote(node.accesses, conflict.words);
    const bool known = std::ranges::any_of(node.pending, [&](const auto& d) {
      return d.waits == step && d.first == held.at;
    });
    if (possible && !known && node.made < kDecisionsMax) {
      ++node.made;
      node.pending.push_back({.waits = step,
                              .first = held.at,
                              .words = held.words,
                              .node = nodes_.size()});
    }
  }
}

// Tries the node's pending decisions, then its other threads, from its state.
Result<ConflictSearch::Outcome> ConflictSearch::TryOtherwise(Node& node) {
  while (!node.pending.empty()) {
    auto decisions = std::make_shared<std::vector<Decision>>(*node.decisions);
    decisions->push_back(std::move(node.pending.back()));
    node.pending.pop_back();
    decisions_ = std::move(decisions);
    node.decided = true;
    // Which threads have failed here says nothing of what they do under another
    // decision.
    std::vector<uint32_t> tried = std::exchange(node.tried, {});
    CLEW_ASSIGN_OR_RETURN(outcome, TryFrom(node));
    node.tried = std::move(tried);
    if (outcome != Outcome::kNothing) {
      return outcome;
    }
    node.conflict.Add(WhyNot(node));
    Restore(node);
  }
  node.decided = false;
  if (!options_.plain_alternatives) {
    return Outcome::kNothing;
  }
  return TryFrom(node);
}

// Whether one of these words was written since then.
bool ConflictSearch::Wrote(size_t accesses, const WordSet& words) const {
  return std::any_of(accesses_.begin() + static_cast<std::ptrdiff_t>(accesses),
                     accesses_.end(), [&](const WordAccess& access) {
                       return Writes(access.kind) &&
                              words.Contains(access.word);
                     });
}

bool ConflictSearch::Touches(const Node& node, const WordSet& words) const {
  return std::any_of(
      accesses_.begin() + static_cast<std::ptrdiff_t>(node.accesses),
      accesses_.end(), [&](const WordAccess& access) {
        return words.Contains(access.word) &&
               table_.IsContestedWord(access.word);
      });
}

bool ConflictSearch::WroteWord(size_t accesses, uint64_t word) const {
  WordSet words;
  words.Add(word);
  return Wrote(accesses, words);
}

// The place in the log of the accesses of that step on the path.
std::pair<size_t, size_t> ConflictSearch::AccessesOf(size_t node) const {
  return {nodes_[node].accesses, node + 1 < nodes_.size()
                                     ? nodes_[node + 1].accesses
                                     : accesses_.size()};
}

// Why no step was found from the node's state. Where a thread was overtaken,
// others might still have gone on: the state is not known to be dead.
ConflictSearch::Conflict ConflictSearch::WhyNot(const Node& node) {
  if (overtaken_) {
    Conflict conflict = *std::move(overtaken_);
    overtaken_.reset();
    return conflict;
  }
  Conflict conflict = DeadEnd(node);
  Remember(conflict);
  return conflict;
}

// What keeps every thread from going on, or joined the conflict set below.
ConflictSearch::Conflict ConflictSearch::DeadEnd(const Node& node) const {
  Conflict conflict;
  for (const Held& held : *held_ | std::views::reverse) {
    conflict.words.Add(held.conflict_words);
    conflict.held.push_back(held);
  }
  for (size_t thread = 0; thread < process_.thread_count(); ++thread) {
    const follower::Wait& wait = process_.thread(thread).wait;
    if (wait.HangsOnWord()) {
      conflict.words.Add(WordOf(wait.word()));
    }
  }
  conflict.Add(node.conflict);
  return conflict;
}

// Adds what the thread's last steps read.
void ConflictSearch::AddReadsOf(uint32_t thread, WordSet& words) const {
  const auto& nodes = nodes_of_[thread];
  const size_t count = std::min(options_.conflict_steps, nodes.size());
  for (size_t i = nodes.size() - count; i < nodes.size(); ++i) {
    const auto [begin, end] = AccessesOf(nodes[i]);
    for (size_t at = begin; at < end; ++at) {
      if (Reads(accesses_[at].kind) &&
          table_.IsContestedWord(accesses_[at].word)) {
        words.Add(accesses_[at].word);
      }
    }
  }
}

// Called when no thread can go on. Returns whether this is the end, and as
// recorded.
Result<bool> ConflictSearch::IsAtEnd(Node& node) {
  CLEW_ASSIGN_OR_RETURN(all_ended, process_.AllEnded());
  if (!all_ended) {
    return false;
  }
  CLEW_ASSIGN_OR_RETURN(differs, follower::CheckFailure(process_, failure_));
  if (differs) {
    ++report_.contradictions;
    report_.furthest_retired = process_.retired_total();
    report_.furthest = *differs;
    AddReadsOf(static_cast<uint32_t>(differs->thread), node.conflict.words);
  }
  return !differs.has_value();
}

// Because its next step would contradict, or by decision.
bool ConflictSearch::MustWait(uint32_t thread) const {
  return std::ranges::any_of(
             *held_,
             [thread](const Held& held) { return held.at.thread == thread; }) ||
         std::ranges::any_of(*decisions_, [&](const Decision& decision) {
           return decision.waits.thread == thread &&
                  decision.waits.insn == process_.thread(thread).retired;
         });
}

bool ConflictSearch::AtLimit() const {
  return report_.steps >= options_.steps_max ||
         (report_.furthest.kind == follower::Contradiction::Kind::kSyscall &&
          report_.steps - furthest_since_steps_ >= options_.refused_steps_max);
}

bool ConflictSearch::OutOfBudget() {
  return AtLimit() || (budget_checks_++ % 64 == 0 && Clock::now() >= deadline_);
}

// The steps from this node on.
std::vector<ScheduleStep> ConflictSearch::StepsFrom(size_t node) const {
  std::vector<ScheduleStep> steps;
  for (size_t i = node; i < nodes_.size(); ++i) {
    AppendRun(steps, process_.tid(nodes_[i].thread), EndOfStep(i));
  }
  return steps;
}

std::shared_ptr<RunPoint> ConflictSearch::TakePoints(
    std::shared_ptr<RunPoint> from) {
  const uint64_t end = process_.retired_total();
  const uint64_t begin = from->process.retired_total();
  std::vector<std::shared_ptr<RunPoint>> points;  // latest first
  uint64_t back = options_.first_point_back;
  const auto add_point = [&] {
    points.push_back(std::make_shared<RunPoint>(RunPoint{
        .process = process_,
        .rules = rules_,
        .guess = guess_,
        .history =
            std::make_shared<RunHistory>(std::vector<ScheduleStep>(), nullptr),
        .previous = nullptr}));
  };
  add_point();
  // Invariant: the process stands at the last point added. The steps to it from
  // the next earlier point are read off before the process is rolled back
  // there.
  while (end > begin + back && !nodes_.empty()) {
    size_t kept = nodes_.size();
    while (kept > 0 && nodes_[kept - 1].retired_total + back > end) {
      --kept;
    }
    if (kept <= 1) {
      break;  // back at the start
    }
    points.back()->history->steps = StepsFrom(kept - 1);
    UnwindTo(kept - 1);
    add_point();
    back *= 2;
  }
  points.back()->history->steps = StepsFrom(0);
  for (const auto& point : points | std::views::reverse) {
    point->history->previous = from->history;
    point->previous = std::exchange(from, point);
  }
  return points.front();
}

}  // namespace clew::solver
