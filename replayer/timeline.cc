#include "replayer/timeline.h"

#include <algorithm>
#include <array>
#include <utility>

#include "common/check.h"

namespace clew::replayer {
namespace {

// Instructions between two looks at `interrupted`.
constexpr uint64_t kSliceInsns = 200'000;
// Steps of the ladder of near checkpoints shrink down to this.
constexpr uint64_t kNearInsns = 256;
constexpr size_t kNearMax = 48;

const StopPoints kNoStopPoints;

// While it lives, the target's output goes to `sink`.
class OutputScope {
 public:
  OutputScope(ReplayTarget& target, OutputSink* sink) : target_(target) {
    target_.set_output(sink);
  }
  ~OutputScope() { target_.set_output(nullptr); }
  OutputScope(const OutputScope&) = delete;
  OutputScope& operator=(const OutputScope&) = delete;

 private:
  ReplayTarget& target_;
};

}  // namespace

Timeline::Timeline(ReplayTarget& target, TimelineOptions options)
    : target_(target),
      options_(options),
      spacing_(std::max<uint64_t>(options.checkpoint_insns, 1)) {
  CLEW_CHECK(target_.position() == 0, "timeline begins at position {}",
             target_.position());
  options_.checkpoints_max = std::max<size_t>(options_.checkpoints_max, 2);
  target_.set_output(nullptr);
  checkpoints_[0] = target_.Save();
}

Tid Timeline::CurrentThread() const {
  if (const auto next = target_.ThreadAt(position())) {
    return *next;
  }
  const Tid failed = target_.failure().thread;
  if (target_.ReadRegisters(failed)) {
    return failed;
  }
  const auto last =
      position() == 0 ? std::nullopt : target_.ThreadAt(position() - 1);
  return last && target_.ReadRegisters(*last) ? *last
                                              : target_.Threads().front().tid;
}

Position Timeline::LoadBefore(Position position) {
  // Position 0 always has one.
  const auto far = std::prev(checkpoints_.upper_bound(position));
  const auto after = near_.upper_bound(position);
  if (after != near_.begin() && std::prev(after)->first > far->first) {
    target_.Load(*std::prev(after)->second);
    return std::prev(after)->first;
  }
  target_.Load(*far->second);
  return far->first;
}

Position Timeline::NextCheckpoint() const {
  return (position() / spacing_ + 1) * spacing_;
}

// Saves the present state if it is due; thins out when there are too many.
void Timeline::SaveCheckpoint() {
  if (position() % spacing_ != 0 || checkpoints_.contains(position())) {
    return;
  }
  checkpoints_[position()] = target_.Save();
  while (checkpoints_.size() > options_.checkpoints_max) {
    spacing_ *= 2;
    std::erase_if(checkpoints_, [this](const auto& entry) {
      return entry.first % spacing_ != 0;
    });
  }
}

Status Timeline::RunSilently(Position position) {
  while (target_.position() < position) {
    const Position until = std::min(position, NextCheckpoint());
    CLEW_ASSIGN_OR_RETURN(stop, target_.Run(until, kNoStopPoints, true));
    (void)stop;  // nothing but kPosition is possible without stop points
    SaveCheckpoint();
  }
  return {};
}

// Goes from here to `position` and saves states at a half, three quarters,
// seven eighths, ... of the way, so that the next steps back are short.
Status Timeline::SaveLadder(Position position) {
  while (position - target_.position() > 2 * kNearInsns) {
    const Position middle =
        target_.position() + (position - target_.position()) / 2;
    CLEW_RETURN_IF_ERROR(RunSilently(middle));
    near_[middle] = target_.Save();
    if (near_.size() > kNearMax) {
      // What is farthest from here is of least use.
      const Position first = near_.begin()->first;
      const Position last = near_.rbegin()->first;
      const bool drop_last =
          last > position && last - position > position - first;
      near_.erase(drop_last ? std::prev(near_.end()) : near_.begin());
    }
  }
  return RunSilently(position);
}

Status Timeline::ReturnTo(Position position, Status status) {
  if (!status) {
    LoadBefore(position);
    (void)RunSilently(position);  // the first error is the one to tell
  }
  return status;
}

Status Timeline::Seek(Position position) {
  CLEW_CHECK(position <= target_.end(), "seek to {} of {}", position,
             target_.end());
  const Position here = target_.position();
  if (position == here) {
    return {};
  }
  // Forwards, the present state may be nearer than any checkpoint.
  const auto far = std::prev(checkpoints_.upper_bound(position))->first;
  if (position < here || far > here) {
    LoadBefore(position);
  }
  return ReturnTo(here, SaveLadder(position));
}

Tid Timeline::ThreadAt(Position position) const {
  const auto thread = target_.ThreadAt(position);
  CLEW_CHECK(thread.has_value(), "no thread retires at {}", position);
  return *thread;
}

Result<TimelineStop> Timeline::Stopped(const RunStop& stop) const {
  if (stop.end == RunEnd::kWatchpoint) {
    return TimelineStop{StopCause::kWatchpoint,
                        stop.store_of.value_or(ThreadAt(position() - 1)),
                        stop.watch};
  }
  return TimelineStop{StopCause::kBreakpoint, ThreadAt(position()), {}};
}

Result<TimelineStop> Timeline::RunForward(const StopPoints& points,
                                          std::optional<Tid> step,
                                          const Interrupted& interrupted) {
  const Position start = position();
  auto stop = ForwardTo(points, step, interrupted);
  if (!stop) {
    CLEW_RETURN_IF_ERROR(ReturnTo(start, std::unexpected(stop.error())));
  }
  return stop;
}

Result<TimelineStop> Timeline::ForwardTo(const StopPoints& points,
                                         std::optional<Tid> step,
                                         const Interrupted& interrupted) {
  const OutputScope output(target_, output_);
  // Where the thread to step retires next; the end if it never does.
  const Position step_at =
      step ? target_.FirstFrom(*step, position()).value_or(target_.end())
           : target_.end();
  const bool stepping = step_at < target_.end();
  const Position goal = step_at + (stepping ? 1 : 0);
  bool pass_first = stepping && step_at == position();
  while (position() < goal) {
    const Position until =
        std::min({goal, NextCheckpoint(), position() + kSliceInsns});
    CLEW_ASSIGN_OR_RETURN(stop, target_.Run(until, points, pass_first));
    SaveCheckpoint();
    if (stop.end != RunEnd::kPosition) {
      return Stopped(stop);
    }
    pass_first = false;
    if (position() < goal && interrupted && interrupted()) {
      return TimelineStop{StopCause::kInterrupted, CurrentThread(), {}};
    }
  }
  if (step && stepping) {
    return TimelineStop{StopCause::kStep, *step, {}};
  }
  return TimelineStop{StopCause::kEnd, CurrentThread(), {}};
}

// Runs to `until` and remembers the last thing a reverse run would stop at.
Result<std::optional<Timeline::Hit>> Timeline::LastHit(
    Position until, const StopPoints& points) {
  std::optional<Hit> last;
  bool pass_first = false;
  while (position() < until) {
    CLEW_ASSIGN_OR_RETURN(stop, target_.Run(until, points, pass_first));
    SaveCheckpoint();
    if (stop.end == RunEnd::kPosition) {
      break;
    }
    CLEW_ASSIGN_OR_RETURN(reported, Stopped(stop));
    const bool after = stop.end == RunEnd::kWatchpoint;
    last = Hit{position() - (after ? 1 : 0), reported};
    pass_first = !after;
  }
  return last;
}

Result<TimelineStop> Timeline::RunBackward(const StopPoints& points,
                                           const Interrupted& interrupted) {
  const Position start = position();
  if (points.empty()) {
    CLEW_RETURN_IF_ERROR(Seek(0));
    return TimelineStop{StopCause::kBegin, CurrentThread(), {}};
  }
  Position upper = start;  // everything from here to `start` is searched
  while (upper > 0) {
    const Position lower = LoadBefore(upper - 1);
    auto hit = LastHit(upper, points);
    if (!hit) {
      CLEW_RETURN_IF_ERROR(ReturnTo(start, std::unexpected(hit.error())));
    }
    if (const auto& found = *hit) {
      CLEW_RETURN_IF_ERROR(Seek(found->position));
      return found->stop;
    }
    upper = lower;
    if (options_.progress != nullptr) {
      options_.progress->Update(start - upper, start);
    }
    if (upper > 0 && interrupted && interrupted()) {
      CLEW_RETURN_IF_ERROR(Seek(upper));
      return TimelineStop{StopCause::kInterrupted, CurrentThread(), {}};
    }
  }
  CLEW_RETURN_IF_ERROR(Seek(0));
  return TimelineStop{StopCause::kBegin, CurrentThread(), {}};
}

Result<TimelineStop> Timeline::StepBackward(Tid thread) {
  const auto before = target_.LastBefore(thread, position());
  CLEW_RETURN_IF_ERROR(Seek(before.value_or(0)));
  return TimelineStop{before ? StopCause::kStep : StopCause::kBegin,
                      before ? thread : CurrentThread(),
                      {}};
}

}  // namespace clew::replayer
