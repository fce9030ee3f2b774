#include "solver/search/machine_executor.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "common/check.h"
#include "follower/describe_run.h"
#include "follower/failure_check.h"

namespace clew::solver {

using constraints::StepResult;
using follower::Advance;

namespace {

constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();
constexpr size_t kConflictReadsMax = 4;

}  // namespace

MachineExecutor::MachineExecutor(const follower::Process& start,
                                 const Failure& failure,
                                 uint64_t clock_slack_ticks, WordTable& words,
                                 Cuts cuts, follower::GuessOptions guess)
    : failure_(failure),
      process_(start),
      rules_(process_, clock_slack_ticks),
      guess_(process_, guess),
      cuts_(std::move(cuts)),
      exposed_(start.thread_count()),
      steps_(start.actor_count()),
      watcher_(process_, words) {
  if (process_.queues() != 0) {
    contested_words_ = words.ContestedWords();
  }
  for (uint32_t i = 0; i < start.thread_count(); ++i) {
    contested_.push_back(words.contested(i));
  }
  process_.mutable_memory().EnableDigest();
  process_.set_observer(&watcher_);
  process_.set_stops_asleep(true);
  process_.set_stops_to_drain(true);
}

MachineExecutor::~MachineExecutor() = default;

// The value, or `otherwise` after an error, which is kept.
template <class T>
T MachineExecutor::Value(const Result<T>& result, T otherwise) const {
  if (!result) {
    error_ = result.error();
    return otherwise;
  }
  return *result;
}

uint32_t MachineExecutor::actor_count() const {
  return static_cast<uint32_t>(process_.actor_count());
}

bool MachineExecutor::Finished(uint32_t number) const {
  const auto [kind, thread, queue] = process_.actor(number);
  if (kind == ScheduleStep::Kind::kFlush) {
    return Finished(static_cast<uint32_t>(thread)) &&
           !process_.OldestStore(thread, queue);
  }
  const StreamBlock* const none = nullptr;
  return Value(process_.NextBlock(thread), none) == nullptr;
}

bool MachineExecutor::Enabled(uint32_t number) const {
  const auto [kind, thread, queue] = process_.actor(number);
  if (kind == ScheduleStep::Kind::kFlush) {
    return !error_ && process_.MayLeave(thread, queue);
  }
  return !error_ && Value(process_.CanRun(thread), false) &&
         !Value(process_.WaitsToDrain(thread), true) &&
         Value(rules_.Permits(process_, thread), false);
}

uint64_t MachineExecutor::NextStop(uint32_t thread, uint64_t insn) const {
  const auto found = contested_[thread].lower_bound(insn);
  const uint64_t contested =
      found == contested_[thread].end() ? kNever : found->first;
  return std::min(contested, cuts_.Next(thread, insn));
}

constraints::NextStep MachineExecutor::Next(uint32_t number) const {
  const auto [kind, thread, queue] = process_.actor(number);
  constraints::NextStep next;
  if (kind == ScheduleStep::Kind::kFlush) {
    next.kind = AccessKind::kWrite;
    if (const auto store = process_.OldestStore(thread, queue)) {
      next.word = TraceeAddr(store->addr / 8 * 8);
      next.size_bytes = store->size_bytes;
    }
    return next;
  }
  const StreamBlock* const none = nullptr;
  const StreamBlock* const block = Value(process_.NextBlock(thread), none);
  if (block != nullptr) {
    next.time = block->time;
  }
  const auto found = contested_[thread].find(process_.thread(thread).retired);
  next.contested = found != contested_[thread].end();
  if (next.contested) {
    next.kind = found->second.kind;
    next.word = TraceeAddr(found->second.word * kWordBytes / 8 * 8);
  } else if (process_.thread(thread).wait.HangsOnWord()) {
    // Which of several sleepers a wake was for is not recorded.
    next.contested = true;
    next.kind = AccessKind::kReadModifyWrite;
    next.word = TraceeAddr(process_.thread(thread).wait.word());
  } else {
    next.contested = cuts_.Contains(thread, process_.thread(thread).retired);
  }
  return next;
}

StepResult MachineExecutor::Step(uint32_t number) {
  const auto [kind, thread, queue] = process_.actor(number);
  if (!Enabled(number)) {
    return error_ ? Contradict(static_cast<uint32_t>(thread), {})
                  : StepResult::kBlocked;
  }
  return kind == ScheduleStep::Kind::kFlush
             ? Flush(number)
             : RunThread(static_cast<uint32_t>(thread));
}

// The oldest store of the queue leaves it, and then those that nobody contests.
StepResult MachineExecutor::Flush(uint32_t number) {
  const auto [kind, thread, queue] = process_.actor(number);
  steps_[number].push_back({});
  TakeFlush(thread, queue);
  FlushPrivate(thread);
  return Finished(number) ? StepResult::kFinished : StepResult::kOk;
}

void MachineExecutor::TakeFlush(size_t thread, uint32_t queue) {
  const auto store = process_.OldestStore(thread, queue);
  CLEW_CHECK(store.has_value(), "no store of thread {} waits in queue {}",
             process_.tid(thread), queue);
  const ScheduleStep step = {.kind = ScheduleStep::Kind::kFlush,
                             .queue = static_cast<uint16_t>(queue + 1),
                             .thread = process_.tid(thread),
                             .until_insn = store->insn + 1};
  (void)Value(process_.Take(thread, step), Advance());
  if (log_ != nullptr) {
    log_->push_back(step);
  }
}

bool MachineExecutor::IsContested(const machine::WaitingStore& store) const {
  const uint64_t last = (store.addr + store.size_bytes - 1) / 8;
  return contested_words_.contains(store.addr / 8) ||
         contested_words_.contains(last);
}

// No choice is lost where stores that nobody contests leave at once.
void MachineExecutor::FlushPrivate(size_t thread) {
  bool some = process_.StoresWait(thread);
  while (some && !error_) {
    some = false;
    for (uint32_t queue = 0; queue < process_.queues(); ++queue) {
      const auto store = process_.OldestStore(thread, queue);
      if (store && !IsContested(*store) && process_.MayLeave(thread, queue)) {
        TakeFlush(thread, queue);
        some = true;
      }
    }
  }
}

StepResult MachineExecutor::RunThread(uint32_t thread) {
  const follower::ThreadState& state = process_.thread(thread);
  const auto at = contested_[thread].find(state.retired);
  const uint64_t next = NextStop(thread, state.retired + 1);
  const Begin begin = BeginOf(thread);
  StepRead read;
  if (at != contested_[thread].end()) {
    read = {.word = at->second.word, .reads = Reads(at->second.kind)};
  }
  steps_[thread].push_back(read);
  watcher_.set_thread(thread);
  const uint64_t before = state.retired;
  while (state.retired < next && Enabled(thread)) {
    const uint64_t end =
        Value(guess_.GroupEnd(process_, thread), state.retired);
    const uint64_t at_insn = state.retired;
    const Advance advance = Value(
        process_.Run(thread, std::min(next, end)),
        Advance{.stop = Advance::Stop::kContradiction, .insns_retired = 0});
    if (advance.stop == Advance::Stop::kContradiction) {
      NoteExposed(thread, begin);
      return Contradict(thread, process_.contradiction());
    }
    if (log_ != nullptr) {
      AppendRun(*log_, process_.tid(thread), state.retired);
    }
    FlushPrivate(thread);
    const bool stored = process_.queues() != 0 && state.retired > at_insn;
    if ((advance.stop != Advance::Stop::kReached && !stored) ||
        state.wait.HangsOnWord()) {
      break;
    }
  }
  CLEW_CHECK(error_ || state.retired > before, "thread {} does not go on",
             process_.tid(thread));
  return Finished(thread) ? StepResult::kFinished : StepResult::kOk;
}

MachineExecutor::Begin MachineExecutor::BeginOf(uint32_t thread) const {
  const follower::ThreadState& state = process_.thread(thread);
  return {.insn = state.retired,
          .block = state.block,
          .block_insn = state.retired - state.block_done,
          .contested = contested_[thread].contains(state.retired) ||
                       state.wait.HangsOnWord()};
}

bool MachineExecutor::OthersEnabled(uint32_t thread) const {
  for (uint32_t other = 0; other < actor_count(); ++other) {
    if (other != thread && Enabled(other)) {
      return true;
    }
  }
  return false;
}

void MachineExecutor::Expose(uint32_t thread, uint64_t insn) {
  if (!cuts_.Contains(thread, insn)) {
    exposed_.Add(thread, insn);
  }
}

// Behind the contested instruction with which it began, a step that contradicts
// may have read too early what another thread has yet to write.
void MachineExecutor::NoteExposed(uint32_t thread, const Begin& begin) {
  const uint64_t first = begin.insn + (begin.contested ? 1 : 0);
  const uint64_t end = process_.thread(thread).retired;
  const auto read = watcher_.last_read();
  const bool faults =
      process_.contradiction().kind == follower::Contradiction::Kind::kFault &&
      end >= first;
  const bool reads = read && *read >= first;
  if ((reads || faults) && OthersEnabled(thread)) {
    Expose(thread, first);
    ExposeBlocks(thread, begin, first, end);
  }
}

// Cut where facts of order change (time, slice, system calls), too, the thread
// can wait anywhere without holding up another.
void MachineExecutor::ExposeBlocks(uint32_t thread, const Begin& begin,
                                   uint64_t first, uint64_t end) {
  StreamBlock before = BlockAt(thread, begin.block - 1);
  uint64_t insn = begin.block_insn;
  for (uint64_t at = begin.block; insn <= end; ++at) {
    const StreamBlock block = BlockAt(thread, at);
    if (block.insn_count == 0) {
      return;
    }
    if (insn > first &&
        (before.is_syscall || before.interrupted ||
         before.time.hi != block.time.hi || before.slice != block.slice)) {
      Expose(thread, insn);
    }
    if (insn >= first && before.is_syscall) {
      Expose(thread, insn + 1);  // here the call has returned
    }
    before = block;
    insn += block.insn_count;
  }
}

// Empty where there is none.
StreamBlock MachineExecutor::BlockAt(uint32_t thread, uint64_t position) const {
  const StreamBlock* const none = nullptr;
  const StreamBlock* const block =
      position == kNever ? none
                         : Value(process_.tape().Block(thread, position), none);
  return block == nullptr ? StreamBlock() : *block;
}

StepResult MachineExecutor::Contradict(uint32_t thread,
                                       const follower::Contradiction& found) {
  contradiction_ = {};
  contradiction_.thread = thread;
  if (error_) {
    contradiction_.text = error_->message;
    return StepResult::kContradiction;
  }
  contradiction_.ip = TraceeAddr(found.ip);
  contradiction_.text = follower::Describe(found);
  const auto& steps = steps_[thread];
  for (size_t i = steps.size();
       i > 0 && contradiction_.conflict_set.size() < kConflictReadsMax; --i) {
    if (steps[i - 1].reads) {
      contradiction_.conflict_set.push_back(
          {.thread = thread,
           .step = i - 1,
           .word = TraceeAddr(steps[i - 1].word * kWordBytes / 8 * 8),
           .size_bytes = 8});
    }
  }
  return StepResult::kContradiction;
}

MachineExecutor::Mark MachineExecutor::SetMark() {
  Undo undo = {.process = process_.SetMark(),
               .progress = rules_.progress(),
               .steps = {}};
  for (const auto& steps : steps_) {
    undo.steps.push_back(steps.size());
  }
  marks_.push_back(std::move(undo));
  return marks_.size() - 1;
}

void MachineExecutor::RollBack(Mark mark) {
  const Undo& undo = marks_.at(mark);
  process_.RollBack(undo.process);
  rules_.set_progress(undo.progress);
  for (size_t i = 0; i < steps_.size(); ++i) {
    steps_[i].resize(undo.steps[i]);
  }
  marks_.resize(mark + 1);
}

uint64_t MachineExecutor::StateDigest() const { return process_.StateDigest(); }

// The guess lets every store leave at once.
double MachineExecutor::GuessKey(uint32_t number) const {
  const auto [kind, thread, queue] = process_.actor(number);
  return kind == ScheduleStep::Kind::kFlush
             ? -std::numeric_limits<double>::infinity()
             : Value(guess_.KeyOf(process_, thread), 0.0);
}

uint64_t MachineExecutor::EndViolations() {
  const Mark mark = SetMark();
  auto checked = follower::CheckFailure(process_, failure_);
  if (!checked) {
    error_ = checked.error();
    checked = follower::Contradiction{};
  }
  const std::optional<follower::Contradiction>& differs = *checked;
  if (differs) {
    (void)Contradict(0, *differs);
  }
  RollBack(mark);
  return differs ? 1 : 0;
}

const constraints::Contradiction& MachineExecutor::last_contradiction() const {
  return contradiction_;
}

std::vector<ScheduleStep> MachineExecutor::ScheduleOf(
    const constraints::StepOrder& order) {
  std::vector<ScheduleStep> steps;
  log_ = &steps;
  for (const uint32_t number : order) {
    CLEW_CHECK(Step(number) != StepResult::kContradiction,
               "a witness contradicts itself: {}", contradiction_.text);
  }
  log_ = nullptr;
  return steps;
}

}  // namespace clew::solver
