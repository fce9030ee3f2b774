#include "solver/search/depth_first.h"

#include <algorithm>
#include <utility>

#include "common/check.h"

namespace clew::solver {

using constraints::ConflictRead;
using constraints::Executor;
using constraints::StepResult;
using constraints::Verdict;

namespace {

constexpr uint32_t kHoldShiftMax = 10;  // a hold lasts up to 2^10 choices
constexpr int kWriterDepth = 1;         // reads behind a read's writer
// Where this is full, a state that was jumped over is visited again.
constexpr uint64_t kSkippedBytesMax = 64 << 20;

}  // namespace

DepthFirst::DepthFirst(Executor& executor, DigestSet& dead,
                       const DepthFirstOptions& options)
    : executor_(executor),
      dead_(dead),
      options_(options),
      path_(executor),
      skipped_(kSkippedBytesMax),
      random_(options.seed) {}

SearchAnswer DepthFirst::Run(const Deadline& deadline) {
  start_ = path_.SetMark();
  Entered entered = Entered::kPushed;
  if (started_) {
    Resume();
  } else {
    started_ = true;
    entered = Enter();
  }
  if (entered == Entered::kPushed) {
    entered = SearchOn(deadline);
  }
  if (entered == Entered::kWitness) {
    return Finish(Verdict::kWitness, "");
  }
  path_.RollBack(start_);
  if (entered == Entered::kLimit) {
    return Finish(Verdict::kUnknown, limit_);
  }
  return root_incomplete_
             ? Finish(Verdict::kUnknown, "choices were jumped over")
             : Finish(Verdict::kUnsat, "");
}

// Until all is refuted, there is a witness, or a limit is reached.
DepthFirst::Entered DepthFirst::SearchOn(const Deadline& deadline) {
  while (!frames_.empty()) {
    if (LimitReached(deadline)) {
      return Entered::kLimit;
    }
    Frame& frame = frames_.back();
    path_.RollBack(frame.mark);
    // choices_ is a stack as well: the last frame's choices are its end.
    if (frame.next >= choices_.size()) {
      PopFrame();
      continue;
    }
    const uint32_t thread = choices_[frame.next++];
    const StepResult result =
        path_.Step(thread, static_cast<uint32_t>(frames_.size()));
    // Blocked is not refuted, but nothing is lost: the thread can take this
    // step only after another one's, and those are the frame's other choices.
    if (result == StepResult::kBlocked) {
      continue;
    }
    const Entered entered =
        result == StepResult::kContradiction ? Entered::kRefuted : Enter();
    if (entered == Entered::kWitness) {
      return entered;
    }
    // `frame` may dangle from here on: Enter pushes.
    if (entered == Entered::kRefuted && options_.back_jumps) {
      JumpBack();
    }
  }
  return Entered::kRefuted;
}

// Steps through the choices again that led to the last frame. The marks of the
// former call are void, as other engines have set theirs since. The outcomes
// need no look: the executor is deterministic, and the digests are compared.
void DepthFirst::Resume() {
  (void)path_.Advance(0);
  for (size_t i = 0; i < frames_.size(); ++i) {
    frames_[i].mark = path_.SetMark();
    CLEW_CHECK(executor_.StateDigest() == frames_[i].digest,
               "choice {} was not reached again", i);
    if (i + 1 < frames_.size()) {
      const auto frame = static_cast<uint32_t>(i + 1);
      (void)path_.Step(choices_[frames_[i].next - 1], frame);
      (void)path_.Advance(frame);
    }
  }
}

// Asks for the digest only after Advance: states that differ in steps that
// touch nothing contested are one by then.
DepthFirst::Entered DepthFirst::Enter() {
  switch (path_.Advance(static_cast<uint32_t>(frames_.size()))) {
    case SearchPath::Outcome::kWitness:
      return Entered::kWitness;
    case SearchPath::Outcome::kDead:
      return Entered::kRefuted;
    case SearchPath::Outcome::kChoice:
      break;
  }
  const uint64_t digest = executor_.StateDigest();
  if (dead_.Contains(digest)) {
    return Entered::kRefuted;
  }
  // The parent must not become dead by this: part of what is below it was never
  // refuted.
  if (skipped_.Contains(digest)) {
    (frames_.empty() ? root_incomplete_ : frames_.back().incomplete) = true;
    return Entered::kRefuted;
  }
  PushFrame(path_.SetMark(), digest);
  return Entered::kPushed;
}

void DepthFirst::PushFrame(const SearchPath::Mark& mark, uint64_t digest) {
  ++path_.stats().nodes;
  frames_.push_back({mark, digest, choices_.size(), choices_.size(), false});
  UpdateHolds();
  // Held threads come last, but they come: a hold changes the order in which
  // choices are tried and never what is searched.
  std::vector<std::pair<std::pair<bool, double>, uint32_t>> order;
  for (uint32_t t = 0; t < executor_.actor_count(); ++t) {
    if (executor_.Enabled(t)) {
      order.push_back({{IsHeld(t), executor_.GuessKey(t)}, t});
    }
  }
  std::ranges::sort(order);
  for (const auto& [key, thread] : order) {
    choices_.push_back(thread);
  }
}

// What was refuted in full is dead for ever; what was jumped over is not.
void DepthFirst::PopFrame() {
  const Frame frame = frames_.back();
  frames_.pop_back();
  choices_.resize(frame.choices_begin);
  // A full set only costs time.
  (void)(frame.incomplete ? skipped_ : dead_).Insert(frame.digest);
  if (!frame.incomplete) {
    return;
  }
  if (frames_.empty()) {
    root_incomplete_ = true;
  } else {
    frames_.back().incomplete = true;
  }
}

// Unwinds to the latest frame that can change a read of the conflict set, if it
// is not the last one anyway. A dead or skipped state has no conflict set at
// hand: from there the search goes back step by step.
void DepthFirst::JumpBack() {
  const size_t target = path_.contradicted() ? JumpTarget() : 0;
  if (target == 0 || target >= frames_.size()) {
    return;
  }
  ++path_.stats().back_jumps;
  while (frames_.size() > target) {
    frames_.back().incomplete = true;
    PopFrame();
  }
}

// `frame` counts from 1. Its choices end where those of the next frame begin.
bool DepthFirst::HasAlternative(size_t frame) const {
  if (frame == 0 || frame > frames_.size()) {
    return false;
  }
  const size_t end =
      frame == frames_.size() ? choices_.size() : frames_[frame].choices_begin;
  return frames_[frame - 1].next < end;
}

// The latest frame over the conflict set: to go back further would skip one
// that may mend the contradiction. A read that is kNoThread is about the end of
// the run, where every write counts.
size_t DepthFirst::JumpTarget() const {
  size_t target = 0;
  for (const ConflictRead& read : executor_.last_contradiction().conflict_set) {
    const size_t position = read.thread == constraints::kNoThread
                                ? path_.log().size()
                                : path_.PositionOf(read.thread, read.step);
    target = std::max(
        target, FrameThatChanges(read.thread, position, read.word.as_int(),
                                 read.size_bytes, 0));
  }
  return target;
}

// Either the read itself was chosen too early there, or the last foreign write
// before it was; or that write's value came from reads of its own.
size_t DepthFirst::FrameThatChanges(uint32_t thread, size_t position,
                                    uint64_t word, uint32_t size_bytes,
                                    int depth) const {
  const auto& log = path_.log();
  size_t best = 0;
  const size_t own =
      position < log.size() ? log[position].frame : frames_.size();
  if (thread != constraints::kNoThread && HasAlternative(own)) {
    best = own;
  }
  const size_t write =
      path_.LastForeignWrite(thread, word, size_bytes, position);
  if (write == log.size()) {
    return best;
  }
  if (HasAlternative(log[write].frame)) {
    best = std::max<size_t>(best, log[write].frame);
  }
  size_t reads = 0;
  for (size_t i = write;
       depth < kWriterDepth && i-- > 0 && reads < kWriterReads;) {
    if (log[i].thread == log[write].thread && log[i].reads && log[i].has_word) {
      ++reads;
      best = std::max(best, FrameThatChanges(log[i].thread, i, log[i].word,
                                             log[i].size_bytes, depth + 1));
    }
  }
  return best;
}

// Holds depend on seed and depth alone, so that they survive backtracking.
void DepthFirst::UpdateHolds() {
  if (options_.holds_per_1000 == 0) {
    return;
  }
  const size_t threads = executor_.actor_count();
  const size_t depth = frames_.size();
  while (held_until_.size() < (depth + 1) * threads) {
    const size_t now = held_until_.size() / threads;
    const size_t before = held_until_.size() - (now == 0 ? 0 : threads);
    for (size_t t = 0; t < threads; ++t) {
      held_until_.push_back(now == 0 ? 0 : held_until_[before + t]);
    }
    if (random_.Below(1000) < options_.holds_per_1000) {
      const uint64_t length = uint64_t{1} << random_.Below(kHoldShiftMax + 1);
      held_until_[now * threads + random_.Below(threads)] =
          now + 1 + random_.Below(length);
    }
  }
}

bool DepthFirst::IsHeld(uint32_t thread) const {
  const size_t threads = executor_.actor_count();
  const size_t depth = frames_.size();
  return options_.holds_per_1000 != 0 &&
         held_until_[depth * threads + thread] > depth;
}

bool DepthFirst::LimitReached(const Deadline& deadline) {
  if (nodes_before_ + path_.stats().nodes >= options_.nodes_max) {
    limit_ = "node limit";
    return true;
  }
  if (++limit_checks_ % 128 == 0 && deadline.passed()) {
    limit_ = "time limit";
    return true;
  }
  return false;
}

SearchAnswer DepthFirst::Finish(Verdict verdict, const char* why) {
  SearchAnswer answer;
  answer.verdict = verdict;
  answer.why = why;
  if (verdict == Verdict::kWitness) {
    answer.witness = path_.Order();
  }
  answer.stats = path_.stats();
  nodes_before_ += path_.stats().nodes;
  path_.stats() = {};
  path_.stats().deepest = answer.stats.deepest;
  answer.stats.states_remembered = dead_.size();
  answer.deepest_contradiction = path_.deepest_contradiction();
  return answer;
}

}  // namespace clew::solver
