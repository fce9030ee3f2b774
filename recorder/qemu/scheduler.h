#ifndef CLEW_RECORDER_QEMU_SCHEDULER_H_
#define CLEW_RECORDER_QEMU_SCHEDULER_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "common/digest.h"

namespace clew::recorder {

struct SchedulerConfig {
  uint32_t cores = 4;
  // A core runs 1 to twice as many instructions, less one, before another goes
  // on: until kSteadyTicks, and then in proportion to the time, so that turns
  // do not get so many that a long run is slow; kGrowthMax times as many at
  // most.
  uint64_t quantum_insns = 300;
  static constexpr uint64_t kSteadyTicks = 4'000'000;
  static constexpr uint64_t kGrowthMax = 64;
  // How long a thread keeps its core while others wait, in ticks.
  uint64_t slice_min_ticks = 50'000;
  uint64_t slice_max_ticks = 200'000;
  uint64_t seed = 1;
};

// Decides which thread runs on which virtual core, and which core goes next.
// One thread runs at any moment; virtual cores that have a thread take turns in
// small random quanta, which stands for running at the same time. A turn's end
// is not a context switch: the thread stays on its core.
//
// The same calls in the same order give the same decisions on every host.
// Threads are small numbers that the caller chooses (used as an index).
// Not thread-safe.
class Scheduler {
 public:
  using Slot = uint32_t;
  struct Turn {
    Slot thread = 0;
    uint32_t core = 0;
    uint64_t insns = 0;  // > 0
  };

  // REQUIRES: config.cores > 0, config.quantum_insns > 0, slice_min <= max.
  explicit Scheduler(const SchedulerConfig& config);

  // `thread` is able to run. REQUIRES: it was not.
  void Ready(Slot thread);

  // `thread`, which is on a core, cannot go on (it blocked, or ended).
  void Leave(Slot thread);

  // True if the time slice of `thread`, which is on a core, is over and it
  // should make room; otherwise it may have got a new slice.
  bool SliceOver(Slot thread, uint64_t now_ticks);

  // `thread` makes room on its core but could go on.
  void Preempt(Slot thread);

  // Fills cores that have no thread, then picks the next turn; nullopt if no
  // thread is able to run.
  std::optional<Turn> Next(uint64_t now_ticks);

 private:
  static constexpr uint32_t kNoCore = UINT32_MAX;
  struct Core {
    std::optional<Slot> current;
    std::deque<Slot> waiting;
    uint64_t slice_end_ticks = 0;
  };

  void Place(Slot thread);
  void Fill(uint64_t now_ticks);
  std::optional<Slot> TakeFor(Core& core);
  uint64_t SliceTicks();
  uint64_t TurnInsns(uint64_t now_ticks);
  bool AnyoneWaits() const;
  std::vector<uint32_t> IdleCores() const;
  uint32_t CoreOf(Slot thread) const;

  SchedulerConfig config_;
  Random random_;
  std::vector<Core> cores_;
  std::vector<uint32_t> core_of_;  // by thread; kNoCore: on none
  uint32_t last_core_ = kNoCore;
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_SCHEDULER_H_
