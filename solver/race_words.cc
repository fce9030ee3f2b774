#include "solver/race_words.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace clew::solver {
namespace {

// The call found its descriptor closed.
bool FoundNone(const Seen& seen) {
  return seen.what.call && static_cast<int64_t>(seen.what.value) == -EBADF;
}

// Made for the program by code that is not the program's.
bool IsIndirect(const Seen& seen) {
  return seen.owner != Owner::kProgram && !seen.what.call;
}

bool IsInternal(const Seen& seen) {
  return seen.owner == Owner::kLoader ||
         (seen.owner != Owner::kProgram && seen.what.caller == TraceeAddr());
}

}  // namespace

Race Candidate::ToRace() const {
  Race race = {
      .internal = internal, .under_locks = in_sections, .accesses = {}};
  for (const Seen& seen : accesses) {
    race.accesses.push_back(seen.what);
  }
  return race;
}

void RaceWord::Note(const Seen& seen, const RaceFacts& facts) {
  atomic_ = atomic_ || seen.what.access.kind == AccessKind::kReadModifyWrite;
  if (History* const repeated = RepeatedBy(seen)) {
    repeated->last = seen;
    return;
  }
  shared_ = shared_ || (!histories_.empty() &&
                        histories_.front().last.thread != seen.thread);
  for (const History& history : histories_) {
    if (history.last.Meets(seen)) {
      Compare(history, seen, facts);
    }
  }
  const auto is_own = [&](const History& history) {
    return history.last.thread == seen.thread && history.last.Meets(seen);
  };
  std::erase_if(histories_, [&](const History& history) {
    return is_own(history) && (seen.writes() || !history.last.writes());
  });
  for (History& own : histories_) {
    own.read_again = own.read_again || is_own(own);
  }
  for (History& other : histories_) {
    if (other.last.thread != seen.thread && other.last.Meets(seen)) {
      if (!other.others) {
        other.others = std::make_unique<Others>();
      }
      (seen.writes() ? other.others->write : other.others->read) = {
          .what = seen,
          .ordered = facts.locked.IsBefore(other.last.locked, seen.thread)};
    }
  }
  histories_.push_back({.last = seen});
}

// As most do: a word is one thread's as a rule, and read many times or written
// many times.
RaceWord::History* RaceWord::RepeatedBy(const Seen& seen) {
  History* found = nullptr;
  for (History& history : histories_) {
    const Seen& last = history.last;
    if (shared_ || last.thread != seen.thread) {
      return nullptr;
    }
    if (last.bytes == seen.bytes && last.writes() == seen.writes()) {
      found = &history;
    } else if (last.Meets(seen) && (seen.writes() || !history.read_again)) {
      return nullptr;
    }
  }
  return found;
}

std::optional<Candidate> RaceWord::Best() const {
  std::optional<Candidate> best = best_;
  if (best) {
    best->atomic = atomic_;
  }
  return best;
}

void RaceWord::Compare(const History& history, const Seen& seen,
                       const RaceFacts& facts) {
  if (history.last.thread == seen.thread) {
    if (!history.read_again && history.others) {
      CompareTriple(history, seen, facts);
    }
  } else if (history.last.writes() || seen.writes()) {
    ComparePair(history.last, seen, facts);
  }
}

// Which access in between makes the pair what no order of the two threads'
// pairs could. A descriptor is used by many, and changed by few.
void RaceWord::CompareTriple(const History& own, const Seen& seen,
                             const RaceFacts& facts) {
  const bool reads_intrude =
      own.last.writes() && seen.writes() && !seen.what.call;
  const Since& since = reads_intrude ? own.others->read : own.others->write;
  const Seen& between = since.what;
  if (between.order == 0 || (seen.what.call && seen.writes()) ||
      facts.begun.IsBefore(between.begun, seen.thread)) {
    return;
  }
  const bool in_sections = facts.locks.Exclude(own.last.locks, between.locks) &&
                           facts.locks.Exclude(between.locks, seen.locks);
  if (in_sections && own.last.writes()) {
    return;  // what one section left, another one may change
  }
  Offer({.ordered = in_sections ||
                    (since.ordered &&
                     facts.locked.IsBefore(between.locked, seen.thread)),
         .in_sections = in_sections,
         .is_triple = true,
         .loses_write = !own.last.writes() && seen.writes(),
         .distance_insns =
             seen.what.access.insn_index - own.last.what.access.insn_index},
        {&own.last, &between, &seen});
}

void RaceWord::ComparePair(const Seen& before, const Seen& seen,
                           const RaceFacts& facts) {
  if (facts.begun.IsBefore(before.begun, seen.thread) ||
      facts.locks.Exclude(before.locks, seen.locks)) {
    return;
  }
  const bool failed = FoundNone(seen);
  Offer({.ordered = facts.locked.IsBefore(before.locked, seen.thread),
         .is_triple = failed,
         .loses_write = failed},
        {&before, &seen});
}

void RaceWord::Offer(Candidate candidate,
                     std::initializer_list<const Seen*> accesses) {
  for (const Seen* const seen : accesses) {
    candidate.internal = candidate.internal || IsInternal(*seen);
    candidate.indirect += IsIndirect(*seen) ? 1 : 0;
    candidate.order = seen->order;
  }
  if (best_ && best_->Key() <= candidate.Key()) {
    return;
  }
  for (const Seen* const seen : accesses) {
    candidate.accesses.push_back(*seen);
  }
  best_ = std::move(candidate);
}

}  // namespace clew::solver
