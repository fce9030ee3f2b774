#include "solver/search/repair.h"

#include <algorithm>

#include "common/check.h"

namespace clew::solver {

using constraints::ConflictRead;
using constraints::Executor;
using constraints::kNoThread;
using constraints::StepResult;
using constraints::Verdict;

namespace {

// Steps between marks: fewer cost memory, more cost steps to be repeated by
// GoTo.
constexpr size_t kMarkEvery = 64;
// More than any count of steps: a run to the end beats all that stopped before.
constexpr uint64_t kFinishedScore = uint64_t{1} << 62;
// A worse run is accepted this rarely, to leave a local maximum.
constexpr uint64_t kAcceptWorseOneIn = 2000;
constexpr uint64_t kShiftOneIn = 8;  // else the held thread catches up

bool Touches(const SearchPath::Entry& entry, uint64_t word,
             uint32_t size_bytes) {
  return entry.has_word && entry.word < word + size_bytes &&
         word < entry.word + entry.size_bytes;
}

}  // namespace

Repair::Repair(Executor& executor, const RepairOptions& options)
    : executor_(executor),
      options_(options),
      path_(executor),
      random_(options.seed) {}

SearchAnswer Repair::Run(const Deadline& deadline) {
  marks_.assign(1, path_.SetMark());
  if (started_) {
    Resume();
  } else {
    started_ = true;
    StartFromGuess();
  }
  while (!current_.witness) {
    if (moves_ >= options_.moves_max || deadline.passed()) {
      return Finish(Verdict::kUnknown,
                    deadline.passed() ? "time limit" : "move limit");
    }
    if (stale_moves_ >= options_.stale_moves_max) {
      StartFromGuess();
      stale_moves_ = 0;
    }
    ++moves_;
    ++stale_moves_;
    ++path_.stats().nodes;
    Hold hold = {};
    if (ChooseMove(hold)) {
      Try(hold);
      stale_moves_ = Accept() ? 0 : stale_moves_;
    }
  }
  return Finish(Verdict::kWitness, "");
}

void Repair::Resume() {
  BackToStart();
  same_as_current_ = current_.log.size();
  GoTo(current_.log.size());
}

void Repair::StartFromGuess() {
  BackToStart();
  bool consistent = true;
  for (uint32_t thread = NextByGuess(kNoThread);
       consistent && thread != kNoThread; thread = NextByGuess(kNoThread)) {
    consistent = TakeStep(thread) != Taken::kContradiction;
  }
  FinishAttempt(!consistent);
  TakeAttempt();
  best_score_ = current_.score;
}

void Repair::TakeAttempt() {
  current_.score = attempt_.score;
  current_.witness = attempt_.witness;
  current_.contradiction = attempt_.contradiction;
  current_.log = path_.log();
  same_as_current_ = current_.log.size();
}

// marks_[0] is the start, and is never dropped.
void Repair::BackToStart() {
  attempt_.contradiction = {};
  path_.RollBack(marks_[0]);
  marks_.resize(1);
  waits_.assign(executor_.actor_count(), Wait{});
  same_as_current_ = 0;
}

uint32_t Repair::NextByGuess(uint32_t except) const {
  uint32_t best = kNoThread;
  for (uint32_t t = 0; t < executor_.actor_count(); ++t) {
    if (t != except && !waits_[t].waits && executor_.Enabled(t) &&
        (best == kNoThread ||
         executor_.GuessKey(t) < executor_.GuessKey(best))) {
      best = t;
    }
  }
  return best;
}

Repair::Taken Repair::TakeStep(uint32_t thread) {
  if (path_.log().size() / kMarkEvery >= marks_.size()) {
    marks_.push_back(path_.SetMark());
  }
  const SearchPath::Mark mark = path_.SetMark();
  switch (path_.Step(thread, 0)) {
    case StepResult::kBlocked:
      return Taken::kNothing;
    case StepResult::kContradiction:
      break;
    default:
      Wake(path_.log().back());
      return Taken::kStep;
  }
  // If the very step read what does not fit, the thread waits until another
  // one has written there, as a spinning program would.
  attempt_.contradiction = executor_.last_contradiction();
  for (const ConflictRead& read : attempt_.contradiction.conflict_set) {
    if (read.thread == thread && read.step == path_.StepsOf(thread)) {
      waits_[thread] = {true, read.word.as_int(), read.size_bytes};
      path_.RollBack(mark);
      return Taken::kNothing;
    }
  }
  return Taken::kContradiction;
}

void Repair::Wake(const Entry& done) {
  for (uint32_t t = 0; done.writes && t < waits_.size(); ++t) {
    if (t != done.thread &&
        Touches(done, waits_[t].word, waits_[t].size_bytes)) {
      waits_[t].waits = false;
    }
  }
}

void Repair::FinishAttempt(bool contradicted) {
  attempt_.witness = false;
  attempt_.score = path_.log().size();
  bool finished = !contradicted;
  for (uint32_t t = 0; t < executor_.actor_count(); ++t) {
    finished &= executor_.Finished(t);
  }
  if (finished) {
    const uint64_t violations = executor_.EndViolations();
    attempt_.score = kFinishedScore - violations;
    attempt_.witness = violations == 0;
    attempt_.contradiction = executor_.last_contradiction();
  }
}

// Returns whether the new run is better than any since the last start from the
// guess. An equal one is accepted, too, so that the search can cross a plateau,
// but it does not count as progress.
bool Repair::Accept() {
  const bool keep =
      attempt_.score >= current_.score || random_.Below(kAcceptWorseOneIn) == 0;
  if (!keep) {
    return false;
  }
  TakeAttempt();
  const bool better = current_.score > best_score_;
  best_score_ = std::max(best_score_, current_.score);
  return better;
}

bool Repair::ChooseMove(Hold& hold) {
  Place place = {};
  if (!ChoosePlace(place)) {
    return false;
  }
  if (random_.Below(3) == 0) {
    ChaseWriter(place);
  }
  FillHold(place, hold);
  return true;
}

// A read of the conflict set, or any access of its word, or, where the set is
// empty, any.
bool Repair::ChoosePlace(Place& place) {
  const auto& log = current_.log;
  const auto& conflict_set = current_.contradiction.conflict_set;
  if (conflict_set.empty()) {
    return !log.empty() && PlaceAt(random_.Below(log.size()), place);
  }
  const ConflictRead& read = conflict_set[random_.Below(conflict_set.size())];
  if (read.thread == kNoThread || random_.Below(2) == 0) {
    return ChooseFromWord(read, place);
  }
  uint64_t step = 0;
  for (size_t i = 0; i < log.size(); ++i) {
    if (log[i].thread == read.thread && step++ == read.step) {
      return PlaceAt(i, place);
    }
  }
  // The step that failed is not in the log.
  place = {
      log.size(),
      {read.thread, 0, true, false, true, read.word.as_int(), read.size_bytes}};
  return true;
}

bool Repair::PlaceAt(size_t position, Place& place) const {
  place = {position, current_.log[position]};
  return place.access.has_word;
}

bool Repair::ChooseFromWord(const ConflictRead& read, Place& place) {
  const auto& log = current_.log;
  // One pass: the n-th match replaces the choice with probability 1/n, which
  // makes every match equally likely (reservoir sampling).
  uint64_t seen = 0;
  for (size_t i = 0; i < log.size(); ++i) {
    if (Touches(log[i], read.word.as_int(), read.size_bytes) &&
        random_.Below(++seen) == 0) {
      place = {i, log[i]};
    }
  }
  return seen > 0;
}

// From a read to one of the reads just before the write it got its value from.
void Repair::ChaseWriter(Place& place) {
  const auto& log = current_.log;
  const Place start = place;
  for (size_t i = start.position; i-- > 0;) {
    if (log[i].thread == start.access.thread || !log[i].writes ||
        !Touches(log[i], start.access.word, start.access.size_bytes)) {
      continue;
    }
    size_t reads = 0;
    for (size_t k = i; k-- > 0 && reads < kWriterReads;) {
      if (log[k].thread == log[i].thread && log[k].reads && log[k].has_word &&
          random_.Below(++reads) == 0) {
        place = {k, log[k]};
      }
    }
    return;
  }
}

// Either delays it past the next foreign write, or delays the last foreign
// access in conflict with it until it is done. Where there is no such access
// the former is left.
void Repair::FillHold(const Place& place, Hold& hold) {
  const auto& log = current_.log;
  const Entry& access = place.access;
  hold = {place.position, access.thread,     kNoThread,    0,
          access.word,    access.size_bytes, access.writes};
  if (random_.Below(2) == 0) {
    return;
  }
  for (size_t i = place.position; i-- > 0;) {
    if (log[i].thread != access.thread && (log[i].writes || access.writes) &&
        Touches(log[i], access.word, access.size_bytes)) {
      const auto steps = std::count_if(
          log.begin(), log.begin() + static_cast<ptrdiff_t>(place.position),
          [&](const Entry& e) { return e.thread == access.thread; });
      // One more than came before `place`: until the access itself is done.
      hold.from = i;
      hold.thread = log[i].thread;
      hold.until_thread = access.thread;
      hold.until_steps = static_cast<uint64_t>(steps) + 1;
      return;
    }
  }
}

// Brings the executor to where the current run was after `position` steps: back
// to the last mark on the common prefix, then forward by its log. Forgets which
// threads wait; each finds out again by its next step.
void Repair::GoTo(size_t position) {
  const size_t same = std::min(position, same_as_current_);
  const size_t mark = std::min(same / kMarkEvery, marks_.size() - 1);
  path_.RollBack(marks_[mark]);
  marks_.resize(mark + 1);
  waits_.assign(executor_.actor_count(), Wait{});
  while (path_.log().size() < position) {
    const Taken taken = TakeStep(current_.log[path_.log().size()].thread);
    CLEW_CHECK(taken == Taken::kStep, "a run did not repeat itself at step {}",
               path_.log().size());
  }
  same_as_current_ = position;
}

bool Repair::IsReleased(const Hold& hold, const Entry& done) const {
  if (hold.until_thread == kNoThread) {
    return done.thread != hold.thread && (done.writes || hold.reads_release) &&
           Touches(done, hold.word, hold.size_bytes);
  }
  return hold.until_steps <= path_.StepsOf(hold.until_thread);
}

bool Repair::MayStep(uint32_t thread, const Hold& hold,
                     const Following& state) const {
  return !(state.held && thread == hold.thread) && !waits_[thread].waits &&
         executor_.Enabled(thread);
}

// Takes the step or owes it. False on a contradiction.
bool Repair::StepIfPossible(uint32_t thread, const Hold& hold,
                            Following& state) {
  const Taken taken =
      MayStep(thread, hold, state) ? TakeStep(thread) : Taken::kNothing;
  if (taken == Taken::kStep) {
    state.held = state.held && !IsReleased(hold, path_.log().back());
  } else {
    ++state.owed[thread];
  }
  return taken != Taken::kContradiction;
}

// Takes owed steps, thread by thread, as far as they are possible now. The held
// thread takes its own only with catch_up; otherwise it stays behind by what it
// owes, and all its later steps are shifted.
bool Repair::CatchUp(const Hold& hold, Following& state) {
  for (uint32_t t = 0; t < state.owed.size(); ++t) {
    while (state.owed[t] > 0 && (t != hold.thread || state.catch_up) &&
           MayStep(t, hold, state)) {
      --state.owed[t];
      if (!StepIfPossible(t, hold, state)) {
        return false;
      }
    }
  }
  return true;
}

// One step of the run that is to be followed. False on a contradiction.
bool Repair::FollowStep(uint32_t thread, const Hold& hold, Following& state) {
  if (!StepIfPossible(thread, hold, state)) {
    return false;
  }
  if (state.held && NextByGuess(hold.thread) == kNoThread) {
    // The hold alone would make a deadlock of this.
    state.held = false;  // nobody else can go on
  }
  return CatchUp(hold, state);
}

// The rest by the guess. False on a contradiction.
bool Repair::FollowGuess(const Hold& hold, Following& state) {
  // Behind the end of the old run there is no order to catch up with.
  state.owed.assign(state.owed.size(), 0);
  while (true) {
    const uint32_t thread = NextByGuess(state.held ? hold.thread : kNoThread);
    if (thread == kNoThread && !state.held) {
      return true;
    }
    if (thread == kNoThread) {
      state.held = false;  // nobody else can go on
    } else if (!StepIfPossible(thread, hold, state)) {
      return false;
    }
  }
}

void Repair::Try(const Hold& hold) {
  GoTo(hold.from);
  attempt_.contradiction = {};
  Following state = {true, random_.Below(kShiftOneIn) != 0,
                     std::vector<uint64_t>(executor_.actor_count(), 0)};
  bool consistent = true;
  for (size_t i = hold.from; consistent && i < current_.log.size(); ++i) {
    consistent = FollowStep(current_.log[i].thread, hold, state);
  }
  FinishAttempt(!(consistent && FollowGuess(hold, state)));
}

SearchAnswer Repair::Finish(Verdict verdict, const char* why) {
  SearchAnswer answer;
  answer.verdict = verdict;
  answer.why = why;
  if (verdict == Verdict::kWitness) {
    answer.witness = path_.Order();
  } else {
    path_.RollBack(marks_[0]);
  }
  answer.stats = path_.stats();
  path_.stats() = {};
  path_.stats().deepest = answer.stats.deepest;
  answer.deepest_contradiction = path_.deepest_contradiction();
  return answer;
}

}  // namespace clew::solver
