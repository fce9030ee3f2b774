#ifndef CLEW_REPLAYER_SCHEDULE_INDEX_H_
#define CLEW_REPLAYER_SCHEDULE_INDEX_H_

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "common/result.h"
#include "common/schedule.h"
#include "common/units.h"

namespace clew::replayer {

// Answers who retires which instruction of a schedule, without running it.
// Positions count the instructions of all threads in schedule order, from 0.
// Each answer is a binary search. Immutable.
class ScheduleIndex {
 public:
  // Fails with kCorruptInput if a step goes back in its thread, if all together
  // run 2^64 instructions or more, or if there are 2^32 steps or more.
  [[nodiscard]] static Result<ScheduleIndex> Create(
      const std::vector<ScheduleStep>& steps);

  uint64_t end() const { return end_; }

  // At returns what runs at `position`; nullopt at or past the end.
  struct Place {
    Tid thread;
    uint64_t thread_insn = 0;  // instructions the thread retired before
    uint64_t run_end = 0;      // first position that is no longer this run
  };
  std::optional<Place> At(uint64_t position) const;

  // Returns the steps of store buffers between the instructions before
  // `position` and the one that runs there.
  std::span<const ScheduleStep> FlushesAt(uint64_t position) const;

  // Return the thread's last position before, or its first from `position` on;
  // nullopt if there is none.
  std::optional<uint64_t> LastBefore(Tid thread, uint64_t position) const;
  std::optional<uint64_t> FirstFrom(Tid thread, uint64_t position) const;

 private:
  // A stretch [begin, end) of one thread.
  struct Run {
    uint64_t begin;
    uint64_t end;
    Tid thread;
    uint64_t thread_begin;  // instructions of the thread before `begin`
  };
  ScheduleIndex() = default;

  std::vector<Run> runs_;  // ascending, without holes or empty ones
  std::unordered_map<Tid, std::vector<uint32_t>> runs_of_;  // into runs_
  std::map<uint64_t, std::vector<ScheduleStep>> flushes_;   // by position
  uint64_t end_ = 0;
};

}  // namespace clew::replayer

#endif  // CLEW_REPLAYER_SCHEDULE_INDEX_H_
