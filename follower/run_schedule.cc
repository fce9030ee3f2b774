#include "follower/run_schedule.h"

#include <algorithm>
#include <optional>

#include "follower/describe_run.h"

namespace clew::follower {
namespace {

// Between two reports of progress, and after which what was passed is
// forgotten.
constexpr uint64_t kProgressInsns = 100'000;

// Of a step's blocks at a time.
constexpr uint64_t kBlocksAhead = 64;

class Runner {
 public:
  Runner(Process& process, const ScheduleRunOptions& options)
      : process_(process), options_(options) {}

  Result<std::optional<std::string>> Take(size_t thread, ScheduleStep step) {
    const uint64_t end = step.until_insn;
    permitted_.reset();
    if (step.kind != ScheduleStep::Kind::kRun) {
      return TakePart(thread, step, end);
    }
    while (true) {
      CLEW_ASSIGN_OR_RETURN(reached, Reached(thread, end));
      if (reached) {
        return std::nullopt;
      }
      CLEW_ASSIGN_OR_RETURN(wrong, EndOfPart(thread, end, step.until_insn));
      if (!wrong) {
        CLEW_ASSIGN_OR_RETURN(left, TakePart(thread, step, end));
        wrong = std::move(left);
      }
      if (wrong) {
        return std::move(wrong);
      }
      LookAround(thread);
    }
  }

 private:
  Result<bool> Reached(size_t thread, uint64_t end) const {
    if (end != kToItsEnd) {
      return process_.thread(thread).retired >= end;
    }
    CLEW_ASSIGN_OR_RETURN(block, process_.NextBlock(thread));
    return block == nullptr;
  }

  // A step may be the whole recording: the tape must not hold it.
  void LookAround(size_t thread) {
    if (process_.retired_total() < next_look_) {
      return;
    }
    next_look_ = process_.retired_total() + kProgressInsns;
    const ThreadState& state = process_.thread(thread);
    process_.tape().Forget(thread, state.block, state.input);
    if (options_.progress != nullptr) {
      options_.progress->Update(process_.retired_total(), 0);
    }
  }

  // Sets how far the thread runs before the rules or the progress are asked
  // again; what it returns is why it may not run.
  Result<std::optional<std::string>> EndOfPart(size_t thread, uint64_t end,
                                               uint64_t& until) {
    const ThreadState& state = process_.thread(thread);
    until = std::min(end, state.retired + kProgressInsns);
    if (options_.rules == nullptr) {
      return std::nullopt;
    }
    CLEW_ASSIGN_OR_RETURN(permitted, Permits(thread));
    if (!permitted) {
      return fmt::format(
          "thread {} after {} instructions: the schedule runs it against the "
          "order of time or core, or past its end",
          process_.tid(thread), state.retired);
    }
    until = std::min(end, EndOfStretch(thread));
    return std::nullopt;
  }

  // What the rules say follows from where the others are, who stand still
  // during a step, and from lower time bound and slice.
  Result<bool> Permits(size_t thread) {
    CLEW_ASSIGN_OR_RETURN(block, process_.NextBlock(thread));
    if (block == nullptr) {
      return false;
    }
    const Stretch stretch = {block->time.lo, block->slice};
    if (permitted_ != stretch) {
      CLEW_ASSIGN_OR_RETURN(permitted,
                            options_.rules->Permits(process_, thread));
      if (!permitted) {
        return false;
      }
      permitted_ = stretch;
    }
    return true;
  }

  // Of the blocks that are permitted with the next one; some of them, where
  // they are many. An error that lies ahead shows when the thread is there, and
  // one that is far off is not asked for: it would have to be decoded.
  uint64_t EndOfStretch(size_t thread) const {
    const ThreadState& state = process_.thread(thread);
    const Stretch permitted = permitted_.value_or(Stretch());
    const auto begins = static_cast<double>(permitted.lo.as_int());
    uint64_t end = state.retired - state.block_done;
    Tape& tape = process_.tape();
    for (uint64_t i = 0; i < kBlocksAhead; ++i) {
      if (!tape.HasBlock(thread, state.block + i) &&
          tape.NoneUntil(thread, begins)) {
        break;
      }
      const auto block = tape.Block(thread, state.block + i);
      if (!block || *block == nullptr ||
          permitted != Stretch{(*block)->time.lo, (*block)->slice}) {
        break;
      }
      end += (*block)->insn_count;
    }
    return end;
  }

  // `end` is that of the step whose part it is.
  Result<std::optional<std::string>> TakePart(size_t thread,
                                              const ScheduleStep& part,
                                              uint64_t end) {
    CLEW_ASSIGN_OR_RETURN(advance, process_.Take(thread, part));
    if (end == kToItsEnd && advance.stop == Advance::Stop::kStreamEnded) {
      CLEW_ASSIGN_OR_RETURN(reached, Reached(thread, end));
      if (reached) {
        return std::nullopt;
      }
    }
    return WhyNotReached(process_, thread, advance);
  }

  // Consecutive blocks that are alike to the rules.
  struct Stretch {
    TscTicks lo;
    uint32_t slice = 0;
    bool operator==(const Stretch&) const = default;
  };

  Process& process_;
  const ScheduleRunOptions& options_;
  std::optional<Stretch> permitted_;  // in this step, the last that was
  uint64_t next_look_ = kProgressInsns;
};

}  // namespace

Result<std::optional<std::string>> RunSchedule(
    Process& process, const std::vector<ScheduleStep>& steps,
    const ScheduleRunOptions& options) {
  Runner runner(process, options);
  for (const ScheduleStep& step : steps) {
    const auto thread = process.tape().IndexOf(step.thread);
    if (!thread) {
      return fmt::format(
          "the schedule has a step of thread {}, which has no stream",
          step.thread);
    }
    if (options.before_step) {
      options.before_step(*thread);
    }
    CLEW_ASSIGN_OR_RETURN(wrong, runner.Take(*thread, step));
    if (wrong) {
      return std::move(wrong);
    }
    const ThreadState& state = process.thread(*thread);
    process.tape().Forget(*thread, state.block, state.input);
  }
  return std::nullopt;
}

}  // namespace clew::follower
