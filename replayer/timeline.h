#ifndef CLEW_REPLAYER_TIMELINE_H_
#define CLEW_REPLAYER_TIMELINE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "common/progress.h"
#include "common/result.h"
#include "replayer/target.h"

namespace clew::replayer {

struct TimelineOptions {
  // Distance of checkpoints at first; doubles whenever there are too many.
  uint64_t checkpoint_insns = 1'000'000;
  // Checkpoints over the whole run. Each holds the pages that were written
  // until the next one.
  size_t checkpoints_max = 128;
  // Told of searches backwards: instructions searched. May be nullptr;
  // borrowed.
  ProgressSink* progress = nullptr;
};

enum class StopCause : uint8_t {
  kStep,         // what was asked for is done
  kBreakpoint,   // `thread` is at a breakpoint, before its instruction
  kWatchpoint,   // `thread` touches `watch`: just did (forwards), or will with
                 // its next instruction (backwards)
  kBegin,        // at position 0
  kEnd,          // at target.end()
  kInterrupted,  // the caller asked to stop
};

struct TimelineStop {
  StopCause cause = StopCause::kStep;
  Tid thread;
  Watchpoint watch;  // only for kWatchpoint
};

// Both directions of time over a target that only runs forward: checkpoints,
// and forward runs from them.
//
// Cost: a step back runs at most a few hundred instructions once a
// neighbourhood has been visited, and at most the distance of two checkpoints
// before. A search backwards runs every instruction it goes over once, and
// those from the checkpoint to the hit once more.
//
// Output is shown only by RunForward: going back and searching are silent. Its
// runs fail as ReplayTarget::Run does. After an error the timeline is where it
// was, as far as the target can be brought back there. Not thread-safe.
class Timeline {
 public:
  // Asked every few milliseconds during long runs; true means to stop soon.
  using Interrupted = std::function<bool()>;

  // `target` is borrowed and must outlive the timeline, and nothing else may
  // run it. REQUIRES: target.position() == 0.
  explicit Timeline(ReplayTarget& target, TimelineOptions options = {});

  const ReplayTarget& target() const { return target_; }
  Position position() const { return target_.position(); }

  // Sets where output goes in RunForward; nullptr: nowhere. Borrowed.
  void set_output(OutputSink* sink) { output_ = sink; }

  // Goes to `position`. REQUIRES: position <= target.end().
  [[nodiscard]] Status Seek(Position position);

  // Runs until a stop point, or, given `step`, until that thread has retired
  // one more instruction. A breakpoint at the present position counts, unless
  // it is that of the instruction to step.
  [[nodiscard]] Result<TimelineStop> RunForward(const StopPoints& points,
                                                std::optional<Tid> step,
                                                const Interrupted& interrupted);

  // Goes to the last moment before this one at which a thread was at a
  // breakpoint or about to touch a watchpoint; kBegin, at position 0, if there
  // is none.
  [[nodiscard]] Result<TimelineStop> RunBackward(
      const StopPoints& points, const Interrupted& interrupted);

  // Goes to just before the last instruction that `thread` retired; kBegin, at
  // position 0, if there is none.
  [[nodiscard]] Result<TimelineStop> StepBackward(Tid thread);

  // Returns the thread that retires next; at the end the one that failed, or
  // that retired last.
  Tid CurrentThread() const;

  size_t checkpoint_count() const { return checkpoints_.size(); }

 private:
  using States = std::map<Position, std::unique_ptr<ReplayTarget::State>>;
  struct Hit {
    Position position;
    TimelineStop stop;
  };

  // Loads the last checkpoint at or before `position` and returns its position.
  Position LoadBefore(Position position);
  Position NextCheckpoint() const;
  void SaveCheckpoint();
  // Runs silently to `position`, leaving checkpoints on the way, densely just
  // before it.
  Status RunSilently(Position position);
  Status SaveLadder(Position position);
  Result<TimelineStop> ForwardTo(const StopPoints& points,
                                 std::optional<Tid> step,
                                 const Interrupted& interrupted);
  Result<std::optional<Hit>> LastHit(Position until, const StopPoints& points);
  // REQUIRES: the position is not the end.
  Tid ThreadAt(Position position) const;
  Result<TimelineStop> Stopped(const RunStop& stop) const;
  Status ReturnTo(Position position, Status status);

  ReplayTarget& target_;
  TimelineOptions options_;
  OutputSink* output_ = nullptr;
  uint64_t spacing_;
  States checkpoints_;  // every spacing_ instructions, and 0
  States near_;         // more and more of them towards the present
};

}  // namespace clew::replayer

#endif  // CLEW_REPLAYER_TIMELINE_H_
